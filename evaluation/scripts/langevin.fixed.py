"""Overdamped Langevin dynamics of beads in a double-well potential."""
import argparse
import math
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Bath:
    temperature: float = 0.6
    friction: float = 1.2
    dt: float = 1e-3

    @property
    def kick(self):
        return math.sqrt(2 * self.temperature * self.dt / self.friction)


class Sampler:
    def __init__(self, beads, dims, bath):
        self.bath = bath
        self.x = torch.randn(beads, dims)
        self.advance = torch.compile(self._advance)

    @staticmethod
    def force(x):
        return 4.0 * x * (1.0 - x * x)

    def _advance(self, x, noise):
        drift = self.force(x) * (self.bath.dt / self.bath.friction)
        return x + drift + self.bath.kick * noise

    def step(self):
        self.x = self.advance(self.x, torch.randn_like(self.x))

    def crossing_fraction(self):
        return (self.x > 0).float().mean().item()


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--steps", type=int, default=1600)
    p.add_argument("--beads", type=int, default=20_000)
    args = p.parse_args()
    torch.manual_seed(11)

    sampler = Sampler(args.beads, 24, Bath())
    history = []
    for step in range(args.steps):
        sampler.step()
        if step % 50 == 0:
            history.append(sampler.crossing_fraction())
    print("samples of the occupation:", [round(h, 4) for h in history[-8:]])
    print("variance", sampler.x.var().item())


if __name__ == "__main__":
    main()
