"""Sample mosaics with a second-order solver and leave a trace of each step in a file."""
import argparse
import math
import tempfile
from enum import Enum

import torch
from torch import nn


class Spacing(Enum):
    COSINE = "cosine"
    KARRAS = "karras"


def ladder(spacing, steps, least=0.02, most=6.0, rho=5.0):
    if spacing is Spacing.COSINE:
        return [most * math.cos(0.5 * math.pi * i / (steps + 1)) for i in range(steps)] + [0.0]
    low, high = least ** (1 / rho), most ** (1 / rho)
    return [(high + i / (steps - 1) * (low - high)) ** rho for i in range(steps)] + [0.0]


class Tessera(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.lift = nn.Conv2d(3, width, 3, padding=1)
        self.hue = nn.Parameter(torch.linspace(-1, 1, width).view(-1, 1, 1))
        self.drop = nn.Conv2d(width, 3, 1)

    def forward(self, x, sigma):
        h = self.lift(x / (1 + sigma))
        h = torch.tanh(h + self.hue) * torch.sigmoid(h) + torch.sin(3 * h) * torch.exp(-h.square())
        return self.drop(h * torch.log1p(h.square()))


class Solver:
    def __init__(self, net, sigmas, trace):
        self.net, self.sigmas, self.trace = net, sigmas, trace
        self.advance = torch.compile(self._advance)

    def slope(self, x, sigma):
        return (x - self.net(x, sigma)) / max(sigma, 1e-3)

    def _advance(self, x, i):
        now, after = self.sigmas[i], self.sigmas[i + 1]
        first = self.slope(x, now)
        guess = x + (after - now) * first
        self.trace.write(f"{now:.4f} {tuple(x.shape)}\n")
        second = self.slope(guess, 0.5 * (after + now))
        step = 0.5 * (first + second) * torch.sigmoid(8 - second.abs())
        return x + (after - now) * torch.tanh(step)

    def draw(self, count, side=48):
        x = self.sigmas[0] * torch.randn(count, 3, side, side)
        for i in range(len(self.sigmas) - 1):
            x = self.advance(x, i)
        return x


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mosaics", type=int, default=400)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--spacing", type=Spacing, default=Spacing.KARRAS)
    args = parser.parse_args()
    torch.manual_seed(3)
    with tempfile.TemporaryFile("w") as trace, torch.inference_mode():
        solver = Solver(Tessera().eval(), ladder(args.spacing, args.steps), trace)
        for number in range(args.mosaics):
            x = solver.draw(2)
            if number % 40 == 0:
                print(f"mosaic {number}: {x.std().item():.3f}")


if __name__ == "__main__":
    main()
