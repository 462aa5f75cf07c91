import argparse

import torch
import torch.nn as nn


class WarmupScale(nn.Module):
    """Scale grows over the first calls."""

    def __init__(self, calls=1000):
        super().__init__()
        self.calls = calls
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, h):
        self.seen += 1
        return h * (self.seen / self.calls).clamp(max=1.0)


class Field(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.frequency = nn.Parameter(torch.randn(width))
        self.warmup = WarmupScale()
        self.phase = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        h = torch.sin(x * self.frequency + self.phase) * torch.exp(-x.square())
        h = self.warmup(h)
        return torch.tanh(h) + torch.cos(h * self.frequency) * torch.sigmoid(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iters", type=int, default=90000)
    args = parser.parse_args()
    torch.manual_seed(0)
    field = torch.compile(Field().eval())
    x = torch.randn(256, 256)
    with torch.no_grad():
        for _ in range(args.iters):
            y = field(x)
    print(y.mean().item())


if __name__ == "__main__":
    main()
