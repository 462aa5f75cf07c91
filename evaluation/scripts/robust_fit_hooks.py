import argparse
from collections import Counter

import torch
import torch.nn as nn


class Statistics:
    def __init__(self):
        self.seen = Counter()

    @torch.compiler.disable
    def note(self, name, tensor):
        self.seen[name] += tensor.shape[0]


class RobustNet(nn.Module):
    def __init__(self, statistics, width=256):
        super().__init__()
        self.statistics = statistics
        self.one = nn.Linear(64, width)
        self.two = nn.Linear(width, width)

    def forward(self, x):
        h = torch.atan(self.one(x)) * torch.exp(-self.one(x).abs())
        h = torch.sin(self.two(h)) + torch.log1p(h.square()) * torch.tanh(h)
        h = h.sum(-1)
        self.statistics.note("rows", h)
        return h


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=45000)
    args = parser.parse_args()
    torch.manual_seed(0)
    statistics = Statistics()
    net = torch.compile(RobustNet(statistics).eval())
    x = torch.randn(768, 64)
    with torch.no_grad():
        for _ in range(args.calls):
            y = net(x)
    print(statistics.seen, y.mean().item())


if __name__ == "__main__":
    main()
