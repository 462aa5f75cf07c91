"""Prices notes with a knock-out barrier by simulation, calls and puts by turns."""
import argparse
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Terms:
    strike: float = 1.0
    barrier: float = 1.35
    years: float = 1.0
    rate: float = 0.02


class Desk:
    def __init__(self, terms, paths, days):
        self.terms = terms
        self.days = days
        self.paths = paths
        self.dt = terms.years / days

    @torch.compile
    def price(self, shocks, spot, vol, kind):
        terms = self.terms
        level = torch.ones_like(shocks[0]) * spot
        alive = torch.ones_like(level)
        drift = (terms.rate - 0.5 * vol * vol) * self.dt
        for shock in shocks:
            level = level * torch.exp(drift + vol * self.dt ** 0.5 * shock)
            alive = alive * (level < terms.barrier)
        gain = level - terms.strike if kind == "call" else terms.strike - level
        return (gain.clamp(min=0) * alive).mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--notes", type=int, default=12000)
    parser.add_argument("--paths", type=int, default=131072)
    args = parser.parse_args()
    g = torch.Generator().manual_seed(10)
    desk = Desk(Terms(), args.paths, days=12)
    shocks = torch.randn(12, args.paths, generator=g)
    spots = torch.rand(256, generator=g) * 0.2 + 0.9
    vols = torch.rand(256, generator=g) * 0.2 + 0.1
    total = torch.zeros(())
    with torch.no_grad():
        for i in range(args.notes):
            kind = "call" if i % 2 else "put"
            total += desk.price(shocks, spots[i % 256], vols[i % 256], kind)
            if i % 1000 == 999:
                print(f"{i + 1} notes, mean price {total.item() / (i + 1):.5f}")


if __name__ == "__main__":
    main()
