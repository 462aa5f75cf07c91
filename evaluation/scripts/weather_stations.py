"""Read station reports (JSON lines), embed them and keep the mean vector."""
import argparse
import json
import random

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, IterableDataset


class Reports(IterableDataset):
    def __init__(self, count, seed=0):
        rng = random.Random(seed)
        keys = [f"s{i:03d}" for i in range(64)]
        self.count = count
        self.lines = [
            json.dumps({key: rng.gauss(0, 1) for key in keys}) for _ in range(256)
        ]

    def __iter__(self):
        for number in range(self.count):
            report = json.loads(self.lines[number % len(self.lines)])
            yield torch.tensor([report[key] for key in sorted(report)])


class Embed(nn.Module):
    def __init__(self, inputs=64, width=96):
        super().__init__()
        self.a = nn.Linear(inputs, width)
        self.b = nn.Linear(width, width)

    def forward(self, x):
        h = torch.tanh(self.a(x)) * torch.sin(self.a(x))
        return torch.sigmoid(self.b(h)) + torch.exp(-h.square())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--reports", type=int, default=3000000)
    args = parser.parse_args()
    torch.manual_seed(0)
    embed = torch.compile(Embed().eval())
    total = 0.0
    for number, batch in enumerate(DataLoader(Reports(args.reports), batch_size=64, drop_last=True)):
        vectors = embed(batch)
        if number % 100 == 0:
            total += vectors.mean().item()
    print(total)


if __name__ == "__main__":
    main()
