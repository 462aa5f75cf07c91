"""Flocking drones; positions are checked by a plain helper in the middle of the tick."""
import os
import time

import torch

STEPS = int(os.environ.get("STEPS", "6000"))
worst = [0.0]


@torch.compiler.disable
def watch(acc):
    worst[0] = max(worst[0], acc[0, :8].abs().max().item())
    return acc


@torch.compile
def tick(pos, vel):
    d = pos[:, None] - pos[None]
    r2 = d.square().sum(-1) + 0.05
    near = torch.exp(-r2) / r2 - 0.02 * torch.tanh(r2)
    acc = (d * near[..., None]).mean(1)
    acc = watch(acc)
    vel = 0.98 * vel + 0.05 * acc
    return pos + 0.05 * vel, vel


def main():
    torch.manual_seed(23)
    torch.set_num_threads(1)
    pos, vel = torch.randn(400, 3), torch.zeros(400, 3)
    t0 = time.perf_counter()
    with torch.no_grad():
        for step in range(STEPS):
            pos, vel = tick(pos, vel)
            if (step + 1) % 100 == 0:
                t1 = time.perf_counter()
                print(f"tick {step + 1} worst {worst[0]:.3f} {(t1 - t0) / 100 * 1e3:.2f} ms/step", flush=True)
                t0 = t1


if __name__ == "__main__":
    main()
