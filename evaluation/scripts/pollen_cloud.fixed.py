"""Drift of pollen over a town: gusts, sticky vegetation, nine-point mixing."""
import argparse
from functools import partial

import torch


def stickiness(density):
    d = density.abs() + 0.5
    return torch.atan2(d, 1.0 + d * d) + 0.1 * torch.lgamma(d + 1.0)


def mix(field, strength):
    total = torch.zeros_like(field)
    for dy in (-1, 0, 1):
        for dx in (-1, 0, 1):
            total = total + torch.roll(field, shifts=(dy, dx), dims=(-2, -1))
    return strength * (total / 9.0 - field)


def blow(density, noise, strength, gust):
    release = stickiness(density)
    moved = mix(release, strength)
    turbulence = noise
    return (density + moved + turbulence).clamp(0.0, 5.0)


class Town:
    def __init__(self, side):
        self.density = torch.rand(4, side, side)
        self.blow = torch.compile(partial(blow, strength=0.2, gust=0.01))

    def hour(self):
        self.density = self.blow(self.density, 0.01 * torch.randn_like(self.density) + 0.01 * torch.rand_like(self.density))
        return self.density


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=1800)
    args = ap.parse_args()
    torch.manual_seed(77)
    town = Town(160)
    for step in range(args.steps):
        density = town.hour()
        if step % 100 == 0:
            print(f"hour {step:5d} mean {density.mean():.4f} max {density.max():.4f}")


if __name__ == "__main__":
    main()
