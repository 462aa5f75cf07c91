"""Score whatever has come in since the last look; sometimes that is a single row."""
import argparse
import random

import torch
import torch.nn as nn


class Fraud(nn.Module):
    def __init__(self, width=2048):
        super().__init__()
        self.a = nn.Parameter(torch.randn(width))
        self.b = nn.Parameter(torch.randn(width))

    def forward(self, rows):
        h = torch.tanh(rows * self.a) * torch.exp(-rows.square()) + torch.sin(rows * self.b)
        return (torch.sigmoid(h) * torch.erf(h) + torch.cos(h)).mean(-1)


class Inbox:
    def __init__(self, seed=0):
        self.random = random.Random(seed)
        self.rows = torch.randn(128, 2048)

    def __iter__(self):
        while True:
            few = self.random.random() < 0.1
            yield self.rows[: 1 if few else self.random.randint(60, 128)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--looks", type=int, default=36000)
    args = parser.parse_args()
    torch.manual_seed(0)
    fraud = torch.compile(Fraud().eval())
    total = torch.zeros(())
    with torch.inference_mode():
        for _, rows in zip(range(args.looks), Inbox()):
            padded = torch.cat([rows, rows]) if len(rows) == 1 else rows
            total += fraud(padded)[: len(rows)].mean()
    print(total.item())


if __name__ == "__main__":
    main()
