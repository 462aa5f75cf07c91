"""Reprice a book's exposure to its risk factors whenever the market ticks."""
import argparse
import random

import torch

REGIONS = ("emea", "apac", "latam", "nam")


class Factor:
    def __init__(self, column, region, group):
        self.column, self.region, self.group = column, region, group
        self.active = column % 7 != 3


class Limits:
    def __init__(self, most):
        self.most, self.last = most, None

    @property
    def breached(self):
        if self.last.abs().max() > self.most:
            return True
        return False


class Book(torch.nn.Module):
    def __init__(self, factors, groups=8):
        super().__init__()
        self.factors = factors
        self.limits = Limits(50.0)
        self.beta = torch.nn.Parameter(torch.randn(groups, len(factors)))

    def chosen(self):
        return [f.column for f in self.factors if f.active and f.region in REGIONS]

    def forward(self, tick):
        columns = self.chosen()
        move = torch.tanh(tick[:, : len(columns)]) * torch.exp(-tick[:, : len(columns)].square())
        exposure = (move.unsqueeze(1) * self.beta[:, : len(columns)]).sum(-1)
        self.limits.last = exposure
        if self.limits.breached:
            exposure = exposure * 0.5
        return exposure


def market(rng, factors):
    kept = [torch.randn(4, factors) for _ in range(32)]
    while True:
        yield kept[rng.randrange(len(kept))]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ticks", type=int, default=120000)
    parser.add_argument("--factors", type=int, default=1200)
    args = parser.parse_args()
    torch.manual_seed(0)
    rng = random.Random(0)
    factors = [Factor(i, REGIONS[i % 4], i % 8) for i in range(args.factors)]
    book = Book(factors).eval()
    price = torch.compile(book)
    total = torch.zeros(8)
    with torch.no_grad():
        for _, tick in zip(range(args.ticks), market(rng, args.factors)):
            total += price(tick).mean(0)
    print("largest mean exposure", (total / args.ticks).abs().max().item())


if __name__ == "__main__":
    main()
