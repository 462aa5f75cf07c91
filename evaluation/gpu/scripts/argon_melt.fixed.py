"""Lennard-Jones argon started from a lattice, with forces summed in fixed point.

Fixed-point accumulation makes the trajectory bitwise reproducible whatever the order in which
the pairs are added, which is how we compare restarts between machines.
"""
import os
import math
import time
from dataclasses import dataclass

import torch

device = "cuda"


@dataclass
class Config:
    side: int = 64                # atoms along one edge of the simple cubic start
    spacing: float = 1.12         # in units of sigma
    reach: int = 2                # neighbour shells kept in the (half) pair list
    cutoff: float = 2.5
    dt: float = 0.002
    temperature: float = 0.4
    steps: int = int(os.environ.get("STEPS", "4000"))
    report: int = 500


SCALE = float(2 ** 24)


def lattice(cfg):
    n = torch.arange(cfg.side, device=device)
    grid = torch.stack(torch.meshgrid(n, n, n, indexing="ij"), dim=-1).reshape(-1, 3)
    return grid.float() * cfg.spacing


def half_list(cfg):
    """Pairs (i, j) of lattice neighbours, each pair once."""
    m = cfg.side
    span = range(-cfg.reach, cfg.reach + 1)
    shifts = [(a, b, c) for a in span for b in span for c in span if (a, b, c) > (0, 0, 0)]
    shifts = torch.tensor(shifts, device=device)
    n = torch.arange(m, device=device)
    home = torch.stack(torch.meshgrid(n, n, n, indexing="ij"), dim=-1).reshape(-1, 1, 3)
    other = (home + shifts) % m
    j = (other[..., 0] * m + other[..., 1]) * m + other[..., 2]
    i = torch.arange(m ** 3, device=device)[:, None].expand_as(j)
    return i.reshape(-1).contiguous(), j.reshape(-1).contiguous()


class Melt:
    def __init__(self, cfg):
        self.cfg = cfg
        self.box = cfg.side * cfg.spacing
        self.i, self.j = half_list(cfg)
        self.x = lattice(cfg)
        self.v = math.sqrt(cfg.temperature) * torch.randn_like(self.x)
        self.v -= self.v.mean(0)
        self.f = torch.zeros_like(self.x)
        self.advance = torch.compile(self._advance)

    def _pair_force(self, x):
        d = x[self.i] - x[self.j]
        d = d - self.box * torch.round(d / self.box)
        r2 = d.square().sum(-1, keepdim=True).clamp_min(0.64)
        s6 = r2.reciprocal() ** 3
        magnitude = 24.0 * (2.0 * s6 * s6 - s6) / r2
        magnitude = torch.where(r2 < self.cfg.cutoff ** 2, magnitude, 0.0)
        return magnitude * d

    def _forces(self, x):
        q = torch.round(self._pair_force(x) * SCALE).to(torch.int64)
        total = torch.zeros(x.shape, dtype=torch.int64, device=x.device)
        total.scatter_add_(0, self.i[:, None].expand(-1, 3), q)
        total.scatter_add_(0, self.j[:, None].expand(-1, 3), -q)
        return total.to(torch.float32) / SCALE

    def _advance(self, x, v, f):
        half = v + 0.5 * self.cfg.dt * f
        x = torch.remainder(x + self.cfg.dt * half, self.box)
        f = self._forces(x)
        return x, half + 0.5 * self.cfg.dt * f, f

    def step(self):
        self.x, self.v, self.f = self.advance(self.x, self.v, self.f)

    def temperature(self):
        return (self.v.square().sum() / (3 * self.v.shape[0])).item()


def main():
    torch.manual_seed(84)
    cfg = Config()
    melt = Melt(cfg)
    print(f"{melt.x.shape[0]} atoms, {melt.i.numel() / 1e6:.1f} M pairs")
    for _ in range(3):
        melt.step()
    torch.cuda.synchronize()
    began = time.perf_counter()
    for n in range(1, cfg.steps + 1):
        melt.step()
        if n % cfg.report == 0:
            t = melt.temperature()
            print(f"step {n:5d}  T* = {t:.4f}  {(time.perf_counter() - began) / n * 1e3:.2f} ms/step")
    torch.cuda.synchronize()
    drift = melt.v.mean(0).abs().max().item()
    print(f"momentum per atom {drift:.2e}")


if __name__ == "__main__":
    with torch.no_grad():
        main()
