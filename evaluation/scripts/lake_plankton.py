"""Nutrient, phytoplankton and zooplankton in every cell of a lake model.

The reaction part of the model is integrated cell by cell with a fourth-order
Runge-Kutta scheme; light follows the hour of the day and the wind stirs some
nutrient into the cells every time the state is advanced.
"""
import os
import math
import time

import torch

torch.set_num_threads(1)
torch.manual_seed(29)

CELLS = 400_000
SUBSTEPS = 2
DT = 0.05
STEPS = int(os.environ.get("STEPS", "4000"))


class Rates:
    """Per-cell biology, fixed during a run."""

    def __init__(self, cells):
        self.growth = 0.9 + 0.2 * torch.rand(cells)
        self.half_sat = 0.4 + 0.1 * torch.rand(cells)
        self.grazing = 0.5 + 0.2 * torch.rand(cells)
        self.depth = 1.0 + 9.0 * torch.rand(cells)


def tendency(n, p, z, rates, light):
    shade = torch.exp(-0.08 * rates.depth - 0.3 * p)
    uptake = rates.growth * light * shade * n / (rates.half_sat + n) * p
    eaten = rates.grazing * (1.0 - torch.exp(-1.2 * p)) * z
    p_loss = 0.08 * p
    z_loss = 0.12 * z + 0.05 * z * z
    dn = -uptake + 0.6 * p_loss + 0.3 * eaten + 0.5 * z_loss
    dp = uptake - eaten - p_loss
    dz = 0.6 * eaten - z_loss
    return dn, dp, dz


@torch.compile
def advance(n, p, z, rates, light, stirred):
    n = n + stirred
    for _ in range(SUBSTEPS):
        a = tendency(n, p, z, rates, light)
        b = tendency(n + 0.5 * DT * a[0], p + 0.5 * DT * a[1], z + 0.5 * DT * a[2], rates, light)
        c = tendency(n + 0.5 * DT * b[0], p + 0.5 * DT * b[1], z + 0.5 * DT * b[2], rates, light)
        d = tendency(n + DT * c[0], p + DT * c[1], z + DT * c[2], rates, light)
        n = (n + DT / 6.0 * (a[0] + 2.0 * b[0] + 2.0 * c[0] + d[0])).clamp(min=0.0)
        p = (p + DT / 6.0 * (a[1] + 2.0 * b[1] + 2.0 * c[1] + d[1])).clamp(min=1e-4)
        z = (z + DT / 6.0 * (a[2] + 2.0 * b[2] + 2.0 * c[2] + d[2])).clamp(min=1e-4)
    return n, p, z


def main():
    rates = Rates(CELLS)
    n = 1.0 + 0.5 * torch.rand(CELLS)
    p = 0.2 + 0.1 * torch.rand(CELLS)
    z = 0.1 + 0.05 * torch.rand(CELLS)
    hours = torch.tensor([max(0.0, math.sin(2 * math.pi * h / 24)) for h in range(24)])
    wind = 0.002 * torch.rand(24)
    started = time.perf_counter()
    with torch.no_grad():
        for step in range(STEPS):
            n, p, z = advance(n, p, z, rates, hours[step % 24], wind[step % 24])
            if step % 500 == 0:
                print(f"{step:5d}  phyto {p.mean().item():.4f}  zoo {z.mean().item():.4f}  "
                      f"{time.perf_counter() - started:.1f}s")


if __name__ == "__main__":
    main()
