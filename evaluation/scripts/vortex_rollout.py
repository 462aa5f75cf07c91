"""Coupled oscillator sheet used as a toy model for cardiac tissue."""
import os
import time
from collections import deque

import torch

torch.set_num_threads(1)

STEPS = int(os.environ.get("STEPS", "17000"))
GRID = 256
SUBSTEPS = 4
DT = 0.02


def initial_sheet(seed: int):
    g = torch.Generator().manual_seed(seed)
    u = 0.1 * torch.randn(GRID, GRID, generator=g)
    v = 0.1 * torch.randn(GRID, GRID, generator=g)
    u[: GRID // 2, : GRID // 3] = 1.0
    v[GRID // 3 :, : GRID // 2] = 0.4
    return u, v


@torch.compile
def rollout(u, v, drive):
    for k in range(SUBSTEPS):
        lap = torch.cat([u[1:], u[-1:]], 0) + torch.cat([u[:1], u[:-1]], 0) - 2.0 * u
        lap = lap + torch.cat([u[:, 1:], u[:, -1:]], 1) + torch.cat([u[:, :1], u[:, :-1]], 1) - 2.0 * u
        gate = torch.sigmoid(12.0 * (u - 0.3))
        reaction = u * (1.0 - u) * (u - 0.12) * 8.0
        du = 0.9 * lap + reaction - v * gate + drive * torch.exp(-4.0 * u * u)
        dv = 0.35 * (0.55 * torch.tanh(2.0 * u) - v)
        u = torch.clamp(u + DT * du, -0.6, 1.6)
        v = v + DT * dv
        yield u, v


class Probe:
    """Keeps the recent activity of a few electrodes."""

    def __init__(self, keep: int = 64):
        self.sites = torch.tensor([[20, 20], [96, 40], [150, 150], [60, 170]])
        self.history = deque(maxlen=keep)

    def __call__(self, u):
        self.history.append(u[self.sites[:, 0], self.sites[:, 1]])


def main():
    u, v = initial_sheet(2)
    probe = Probe()
    drive = torch.tensor(0.02)
    t0 = time.time()
    with torch.no_grad():
        for step in range(STEPS):
            for u, v in rollout(u, v, drive):
                pass
            probe(u)
            if step % 700 == 0:
                print(f"t={step * SUBSTEPS * DT:8.2f} mean u {u.mean().item():.5f}")
    last = torch.stack(list(probe.history)).mean(0)
    print("electrodes", [round(x, 4) for x in last.tolist()])
    print(f"mean {u.mean().item():.5f} {v.mean().item():.5f}  {time.time() - t0:.1f}s")


if __name__ == "__main__":
    main()
