"""Tune the six settings of a furnace with as few firings as can be."""
import argparse

import torch

from gpkit import Surrogate


def fire(settings):
    heat = torch.sin(3 * settings[0]) + settings[1] * settings[2]
    return heat - (settings[3:] - 0.4).square().sum() + 0.01 * torch.randn(())


class Search:
    def __init__(self, surrogate, tried, restarts, candidates):
        self.surrogate = surrogate
        self.x = torch.rand(tried, 6)
        self.y = torch.stack([fire(settings) for settings in self.x])
        self.restarts, self.candidates = restarts, candidates

    def propose(self):
        best, where = float("-inf"), None
        for _ in range(self.restarts):
            options = torch.rand(self.candidates, 6)
            gain = self.surrogate.expected_gain(self.x, self.y, options)
            value, index = gain.max(0)
            if value.item() > best:
                best, where = value.item(), options[index]
        return where

    def round(self):
        settings = self.propose()
        self.x = torch.cat([self.x, settings[None]])
        self.y = torch.cat([self.y, fire(settings)[None]])


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=160)
    parser.add_argument("--tried", type=int, default=96)
    parser.add_argument("--restarts", type=int, default=16)
    parser.add_argument("--candidates", type=int, default=768)
    args = parser.parse_args()
    torch.manual_seed(2)
    search = Search(Surrogate(dim=6), args.tried, args.restarts, args.candidates)
    for number in range(args.rounds):
        search.round()
        if number % 4 == 0:
            print(f"firing {number}: best {search.y.max():.4f}", flush=True)


if __name__ == "__main__":
    main()
