"""Simulated annealing of a planar-spin (XY) sheet with quenched couplings."""
import math
import os
import time

import torch
import torch.nn as nn

SMALL = os.environ.get("SMALL") == "1"
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SIDE = 128 if SMALL else 4096


class XYSheet(nn.Module):
    def __init__(self, side, hot=2.0, decay=0.995):
        super().__init__()
        self.hot, self.decay = hot, decay
        self.sweep = 0
        rows = torch.arange(side).unsqueeze(1)
        cols = torch.arange(side).unsqueeze(0)
        self.register_buffer("black", (rows + cols) % 2 == 0)
        self.register_buffer("jx", 1.0 + 0.3 * torch.randn(side, side))
        self.register_buffer("jy", 1.0 + 0.3 * torch.randn(side, side))

    def local_energy(self, theta, ref):
        e = self.jx * torch.cos(theta - torch.roll(ref, -1, 1))
        e = e + torch.roll(self.jx, 1, 1) * torch.cos(theta - torch.roll(ref, 1, 1))
        e = e + self.jy * torch.cos(theta - torch.roll(ref, -1, 0))
        e = e + torch.roll(self.jy, 1, 0) * torch.cos(theta - torch.roll(ref, 1, 0))
        return -e

    def half_sweep(self, theta, colour, temperature):
        trial = theta + (torch.rand_like(theta) - 0.5) * math.pi
        cost = self.local_energy(trial, theta) - self.local_energy(theta, theta)
        accept = torch.rand_like(theta) < torch.exp(-cost / temperature)
        return torch.where(accept & colour, trial, theta)

    def forward(self, theta):
        temperature = self.hot * self.decay**self.sweep + 0.05
        theta = self.half_sweep(theta, self.black, temperature)
        theta = self.half_sweep(theta, ~self.black, temperature)
        self.sweep += 1
        return torch.remainder(theta, 2 * math.pi)


def main():
    steps = int(os.environ.get("STEPS", "300"))
    torch.manual_seed(2)
    sheet = XYSheet(SIDE).to(DEVICE)
    anneal = torch.compile(sheet)
    theta = torch.rand(SIDE, SIDE, device=DEVICE) * 2 * math.pi
    with torch.no_grad():
        for step in range(steps):
            if step == steps // 2:
                if DEVICE.type == "cuda":
                    torch.cuda.synchronize()
                t0 = time.perf_counter()
            theta = anneal(theta)
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
    ms = (time.perf_counter() - t0) * 1e3 / (steps - steps // 2)
    order = torch.hypot(torch.cos(theta).mean(), torch.sin(theta).mean())
    print("sweeps", int(sheet.sweep), "order parameter", order.item())
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()
