"""A committee of small forecasters of hive weight, each compiled on its own."""
import argparse

import torch
from torch import nn


class Forecaster(nn.Module):
    def __init__(self, seed, width=128):
        super().__init__()
        g = torch.Generator().manual_seed(seed)
        self.w = nn.Parameter(torch.randn(width, generator=g))
        self.b = nn.Parameter(torch.randn(width, generator=g))
        self.decay = 0.1
        self.out = nn.Linear(width, 1)

    def forward(self, weather):
        h = weather
        for _ in range(3):
            h = torch.sin(self.w * h + self.b) + torch.tanh(h) * self.decay
            h = h * torch.sigmoid(h) + torch.log1p(h.abs())
        return self.out(h).squeeze(-1)


class Committee:
    def __init__(self, members):
        self.members = [torch.compile(Forecaster(s).eval()) for s in range(members)]

    @torch.no_grad()
    def vote(self, weather):
        opinions = torch.stack([m(weather) for m in self.members])
        return opinions.mean(0), opinions.std(0)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=1000)
    ap.add_argument("--members", type=int, default=14)
    args = ap.parse_args()
    torch.manual_seed(2)
    committee = Committee(args.members)
    season = torch.randn(20, 512, 128)
    doubt = 0.0
    for step in range(args.steps):
        mean, spread = committee.vote(season[step % 20])
        doubt = 0.99 * doubt + 0.01 * spread.mean().item()
        if step % 50 == 0:
            print(f"day {step:5d} weight {mean.mean():.4f} doubt {doubt:.4f}")


if __name__ == "__main__":
    main()
