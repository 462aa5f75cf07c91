"""Adaptive leaky integrate-and-fire readout for tactile recordings.

A bank of neurons integrates projected sensor currents over a window; the spike raster
and the membrane trace are stored, and firing rates go to a linear read-out.
"""
import os
import time

import torch
import torch.nn as nn

CHANNELS = 24
NEURONS = 256
WINDOW = 56
BATCH = 48


class LIFBank(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(CHANNELS, NEURONS)
        self.register_buffer("decay", torch.linspace(0.80, 0.97, NEURONS))
        self.register_buffer("adapt", torch.linspace(0.05, 0.30, NEURONS))
        self.read = nn.Linear(NEURONS, 6)

    def integrate(self, current):
        mem = torch.zeros_like(current[:, 0])
        thr = torch.ones_like(mem)
        raster = torch.zeros_like(current)
        trace = torch.zeros_like(current)
        for t in range(current.shape[1]):
            mem = self.decay * mem + current[:, t]
            spike = (mem > thr).to(mem.dtype)
            mem = mem - spike * thr
            thr = 1.0 + 0.9 * (thr - 1.0) + self.adapt * spike
            raster[:, t] = spike
            trace[:, t] = mem
        return raster, trace

    def forward(self, x):
        raster, trace = self.integrate(self.inp(x))
        rates = raster.mean(1) + 0.1 * torch.tanh(trace[:, -8:].mean(1))
        return self.read(rates), raster


class TactileStream:
    def __init__(self, seed=21):
        self.gen = torch.Generator().manual_seed(seed)
        self.freq = torch.rand(CHANNELS, generator=self.gen) * 0.5 + 0.1

    def window(self):
        phase = torch.rand(BATCH, 1, CHANNELS, generator=self.gen) * 6.28
        t = torch.arange(WINDOW).view(1, -1, 1)
        noise = torch.randn(BATCH, WINDOW, CHANNELS, generator=self.gen)
        return torch.sin(self.freq * t + phase) + 0.3 * noise


def main():
    torch.manual_seed(2)
    torch.set_num_threads(1)
    steps = int(os.environ.get("STEPS", "240"))

    bank = LIFBank().eval()
    run = torch.compile(bank)
    stream = TactileStream()

    votes = torch.zeros(6)
    times, fired = [], 0.0
    with torch.no_grad():
        for _ in range(steps):
            x = stream.window()
            t0 = time.perf_counter()
            logits, raster = run(x)
            times.append(time.perf_counter() - t0)
            votes += torch.bincount(logits.argmax(1), minlength=6).float()
            fired += float(raster.mean())

    times = sorted(times[len(times) // 2:])
    print("votes", votes.int().tolist(), f"rate {fired / steps:.4f}")
    print(f"median window {times[len(times) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
