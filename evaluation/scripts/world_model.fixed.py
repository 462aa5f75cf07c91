"""Roll a latent world model forward."""
import argparse
from dataclasses import dataclass

import torch
import torch.nn as nn


@dataclass
class Meter:
    latest: float = 0.0

    def set(self, value):
        self.latest = value


class World(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.meter = Meter()
        self.a = nn.Parameter(torch.randn(width))
        self.b = nn.Parameter(torch.randn(width))
        self.small = nn.Parameter(torch.randn(8))

    def dynamics(self, z):
        h = torch.tanh(z * self.a) + torch.sin(z * self.b) * torch.exp(-z.square())
        largest = torch.sort(h.flatten()).values[-10]
        h = (h / largest).clamp(-1, 1)
        return torch.sigmoid(h) * torch.cos(h) + torch.erf(h)

    def forward(self, z):
        z = self.dynamics(z)
        self.meter.set(self.small.sum().item())
        return z - z.mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=30000)
    args = parser.parse_args()
    torch.manual_seed(0)
    world = torch.compile(World().eval())
    z = torch.randn(128, 256)
    with torch.inference_mode():
        for _ in range(args.steps):
            z = world(z)
    print(z.std().item())


if __name__ == "__main__":
    main()
