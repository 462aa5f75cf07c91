"""Kernel density of ocean drifters seen from a set of fixed observation points on the sphere.

Drifters move a little every step; the density field is re-evaluated at every point.
"""
import argparse
import math
import statistics
import time

import torch


def parse():
    ap = argparse.ArgumentParser()
    ap.add_argument("--drifters", type=int, default=1536)
    ap.add_argument("--points", type=int, default=640)
    ap.add_argument("--steps", type=int, default=180)
    ap.add_argument("--bandwidth", type=float, default=0.04)
    return ap.parse_args()


def unit_vectors(lat, lon, squash):
    """Authalic-latitude unit vectors on an ellipsoid."""
    phi = torch.atan(squash * torch.tan(lat))
    c = torch.cos(phi)
    return c * torch.cos(lon), c * torch.sin(lon), torch.sin(phi)


def density(lat, lon, weight, plat, plon, bandwidth):
    ax, ay, az = unit_vectors(plat, plon, 0.9966)
    bx, by, bz = unit_vectors(lat, lon, 0.9966)
    dot = ax[:, None] * bx[None, :] + ay[:, None] * by[None, :] + az[:, None] * bz[None, :]
    gap = (1.0 - dot) / bandwidth
    kern = weight[None, :] / (1.0 + gap * gap)
    return kern.sum(1), kern.amax(1)


class Ocean:
    def __init__(self, n, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.lat = (torch.rand(n, generator=g) - 0.5) * 2.0
        self.lon = (torch.rand(n, generator=g) - 0.5) * 2 * math.pi
        self.weight = torch.rand(n, generator=g) + 0.5
        self.gen = g

    def advect(self, dt=0.01):
        u = torch.cos(3 * self.lat) * dt
        v = 0.3 * torch.sin(2 * self.lon) * dt
        self.lon = torch.remainder(self.lon + u + math.pi, 2 * math.pi) - math.pi
        self.lat = (self.lat + v).clamp(-1.4, 1.4)


def main():
    args = parse()
    ocean = Ocean(args.drifters)
    g = torch.Generator().manual_seed(1)
    plat = (torch.rand(args.points, generator=g) - 0.5) * 2.0
    plon = (torch.rand(args.points, generator=g) - 0.5) * 2 * math.pi

    field = torch.compile(density, dynamic=False)

    took, track = [], []
    with torch.no_grad():
        for k in range(-5, args.steps):
            t0 = time.perf_counter()
            ocean.advect()
            rho, peak = field(ocean.lat, ocean.lon, ocean.weight, plat, plon, args.bandwidth)
            if k >= 0:
                took.append(time.perf_counter() - t0)
            if k % 75 == 0:
                track.append((rho.mean().item(), peak.max().item()))
    for r, p in track:
        print(f"mean density {r:9.4f}   strongest {p:7.4f}")
    print(f"per step: {statistics.median(took) * 1e3:.2f} ms")


if __name__ == "__main__":
    main()
