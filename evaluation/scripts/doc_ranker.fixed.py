"""Rank documents of very different lengths."""
import argparse
import random

import torch
import torch.nn as nn


class Ranker(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.query = nn.Parameter(torch.randn(width))
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, words):
        h = torch.tanh(words * self.scale) + torch.sin(words)
        weight = torch.softmax((h * self.query).sum(-1), dim=-1)
        h = torch.sigmoid(h) * torch.exp(-h.square())
        return (weight.unsqueeze(-1) * h).sum(0)


class Index:
    def __init__(self, ranker, seed):
        self.rank = torch.compile(ranker)
        self.random = random.Random(seed)
        self.words = torch.randn(3000, 64)

    def document(self):
        return self.words[: self.random.randrange(1000, 3000)]

    @torch.no_grad()
    def build(self, count):
        total = torch.zeros(64)
        for _ in range(count):
            total += self.rank(self.document())
        return total / count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--documents", type=int, default=36000)
    args = parser.parse_args()
    torch.manual_seed(0)
    print(Index(Ranker().eval(), 0).build(args.documents).norm())


if __name__ == "__main__":
    main()
