import argparse

import torch
from torch import nn

from robust import trimmed_mean


class Scorer(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.lift = nn.Linear(16, width)

    def forward(self, rows):
        h = torch.tanh(self.lift(rows)) + torch.sin(rows.sum(-1, keepdim=True))
        return trimmed_mean(h, 0.1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iters", type=int, default=20000)
    args = parser.parse_args()
    torch.manual_seed(0)
    score = torch.compile(Scorer().eval())
    rows = torch.randn(512, 16)
    with torch.no_grad():
        for _ in range(args.iters):
            y = score(rows)
    print(y.mean())


if __name__ == "__main__":
    main()
