"""Classify points of three interleaved spirals with a small MLP."""
import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def make_spirals(points, classes, generator):
    radius = torch.rand(points, generator=generator)
    label = torch.randint(classes, (points,), generator=generator)
    angle = radius * 4 * math.pi + label * (2 * math.pi / classes)
    angle = angle + 0.15 * torch.randn(points, generator=generator)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1), label


class SpiralNet(nn.Module):
    def __init__(self, hidden, classes):
        super().__init__()
        self.inp = nn.Linear(2, hidden)
        self.mid = nn.Linear(hidden, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x):
        h = F.gelu(self.inp(x))
        h = h + F.silu(self.norm(self.mid(h))) * torch.sigmoid(h)
        return self.head(F.gelu(h))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iters", type=int, default=90000)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--hidden", type=int, default=128)
    args = parser.parse_args()

    generator = torch.Generator().manual_seed(1)
    torch.manual_seed(1)
    model = SpiralNet(args.hidden, 3)
    net = torch.compile(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    x, y = make_spirals(args.batch, 3, generator)
    for step in range(args.iters):
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        if step % 2000 == 0:
            print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
