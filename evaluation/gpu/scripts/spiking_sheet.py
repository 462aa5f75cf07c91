"""Leaky integrate-and-fire neurons on a sheet, driven by a recorded current."""
import os
import time

import torch

DEV = "cuda"
NEURONS = 4096
SUBSTEPS = 25
FRAMES = int(os.environ.get("STEPS", "3500"))
LEAK = 0.97
THRESHOLD = 1.0


@torch.compile
def leak(v):
    return v * LEAK


@torch.compile
def drive(v, current):
    return v + current


@torch.compile
def fires(v):
    return v > THRESHOLD


@torch.compile
def count(total, spikes):
    return total + spikes


@torch.compile
def reset(v, spikes):
    return v * ~spikes


def run_frame(v, total, currents):
    for k in range(SUBSTEPS):
        v = leak(v)
        v = drive(v, currents[k])
        s = fires(v)
        total = count(total, s)
        v = reset(v, s)
    return v, total


def make_currents(n, gen):
    base = torch.rand(n, SUBSTEPS, NEURONS, device=DEV, generator=gen)
    return list((base * 0.09).unbind(0))


@torch.no_grad()
def main():
    gen = torch.Generator(device=DEV).manual_seed(11)
    book = [list(c.unbind(0)) for c in make_currents(16, gen)]
    v = torch.rand(NEURONS, device=DEV, generator=gen)
    total = torch.zeros(NEURONS, device=DEV)
    clock = time.perf_counter()
    for frame in range(FRAMES):
        v, total = run_frame(v, total, book[frame % len(book)])
        if (frame + 1) % 500 == 0:
            rate = total.mean().item() / ((frame + 1) * SUBSTEPS)
            now = time.perf_counter()
            print(f"frame {frame + 1:5d}  rate {rate:.4f}  {(now - clock) / 500 * 1e3:.3f} ms/frame")
            clock = now
    print("busiest neuron:", int(total.argmax()))


if __name__ == "__main__":
    main()
