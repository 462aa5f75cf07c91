"""Value network for board positions; the playing strength is set per request."""
import argparse
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import nn

strength = ContextVar("strength", default=1.0)


@contextmanager
def playing_at(level):
    token = strength.set(level)
    try:
        yield
    finally:
        strength.reset(token)


class Ponder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix = nn.Linear(width, width)
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, h):
        h = h + torch.tanh(self.mix(h))
        h = h * strength.get() + self.bias
        return h * torch.sigmoid(h)


class Value(nn.Module):
    def __init__(self, width=64, depth=10):
        super().__init__()
        self.stem = nn.Linear(12 * 8, width)
        self.ponder = nn.Sequential(*[Ponder(width) for _ in range(depth)])
        self.head = nn.Linear(width, 1)

    def forward(self, board):
        return torch.tanh(self.head(self.ponder(self.stem(board))))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=29000)
    args = ap.parse_args()
    torch.manual_seed(7)
    net = torch.compile(Value().eval())
    positions = torch.randn(256, 16, 96)
    wins = torch.zeros(16)
    with torch.no_grad():
        for step in range(args.steps):
            with playing_at(0.8):
                value = net(positions[step % 256])
            wins += (value.squeeze(-1) > 0).float()
            if step % 1000 == 0:
                print(step, f"wins {wins.sum().item():.0f}")


if __name__ == "__main__":
    main()
