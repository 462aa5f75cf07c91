"""Replays a night of requests: a few sizes often, others seldom."""
import argparse
import random

import torch
import torch.nn as nn


class Pricing(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(width))

    def forward(self, offers):
        h = torch.tanh(offers * self.scale) * torch.exp(-offers.square())
        return (torch.sigmoid(h) + torch.sin(offers)).sum(-1)


class Replay:
    def __init__(self, seed=0):
        self.random = random.Random(seed)
        self.offers = torch.randn(1024, 128)
        self.price = torch.compile(Pricing().eval(), dynamic=False)
        self.latencies = []

    def size(self):
        if self.random.random() < 0.97:
            return 512
        return 64 * self.random.choice((3, 5, 6, 7, 9, 11))

    def request(self):
        return self.price(self.offers[: self.size()])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=400)
    args = parser.parse_args()
    torch.manual_seed(0)
    replay = Replay()
    total = 0.0
    for _ in range(args.requests):
        total += replay.request().mean().item()
    print(total)


if __name__ == "__main__":
    main()
