"""Learns the distance field of a bolt from points, and keeps it as a small network."""
import argparse
import math

import torch
from torch import nn


def bolt_distance(p):
    """A hexagonal head on a shaft with a thread."""
    radius = p[:, :2].norm(dim=1)
    turn = torch.atan2(p[:, 1], p[:, 0])
    sector = torch.remainder(turn + math.pi / 6, math.pi / 3) - math.pi / 6
    head = torch.maximum(radius * torch.cos(sector) - 0.45, (p[:, 2] - 0.7).abs() - 0.15)
    thread = 0.02 * torch.sin(40 * p[:, 2] + turn)
    shaft = torch.maximum(radius - 0.22 - thread, (p[:, 2] + 0.15).abs() - 0.7)
    return torch.minimum(head, shaft)


@torch.compile
class Field(nn.Module):
    def __init__(self, width=48, depth=3, waves=24):
        super().__init__()
        self.register_buffer("waves", torch.randn(3, waves) * 3)
        self.enter = nn.Linear(2 * waves, width)
        self.hidden = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.tune = nn.Parameter(torch.ones(depth, 2, width))
        self.leave = nn.Linear(width, 1)

    def forward(self, points):
        turns = points @ self.waves
        h = self.enter(torch.cat([turns.sin(), turns.cos()], -1))
        for layer, tune in zip(self.hidden, self.tune):
            step = layer(h)
            h = h + torch.sin(tune[0] * step) * torch.exp(-(tune[1] * step).square())
        return self.leave(torch.tanh(h)).squeeze(-1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--points", type=int, default=4096)
    args = parser.parse_args()
    torch.manual_seed(0)
    field = Field()
    optimizer = torch.optim.Adam(field.parameters(), lr=2e-3)
    cloud = torch.rand(200000, 3) * 2 - 1
    truth = bolt_distance(cloud)
    for step in range(args.steps):
        rows = torch.randint(len(cloud), (args.points,))
        gap = field(cloud[rows]) - truth[rows]
        loss = gap.abs().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 400 == 0:
            print(f"{step:6d}  mean gap {loss.item():.4f}")


if __name__ == "__main__":
    main()
