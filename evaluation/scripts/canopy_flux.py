"""Leaf energy balance over a forest plot: a few fixed-point sweeps per minute.

Every leaf element has its own absorbed radiation and boundary conductance;
leaf temperature follows air temperature, humidity and stomatal opening.
"""
import os
import math
import time

import torch
from torch import nn

LEAVES = 400_000
MINUTES = int(os.environ.get("STEPS", "8640"))
WARMUP = 25
SWEEPS = 3


class LeafBalance(nn.Module):
    def __init__(self, leaves, sweeps):
        super().__init__()
        gen = torch.Generator().manual_seed(9)
        self.sweeps = sweeps
        self.register_buffer("shade", 0.1 + 0.9 * torch.rand(leaves, generator=gen))
        self.register_buffer("wind", 0.3 + torch.rand(leaves, generator=gen))

    @staticmethod
    def vapour(temp):
        """Saturation vapour pressure in kPa (Tetens)."""
        return 0.6108 * torch.exp(17.27 * temp / (temp + 237.3))

    def stomata(self, light, deficit):
        opening = light / (light + 180.0)
        return 0.02 + 0.35 * opening * torch.exp(-0.6 * deficit)

    def forward(self, leaf, air, supply, sun):
        light = sun * self.shade
        for _ in range(self.sweeps):
            deficit = (self.vapour(leaf) - supply).clamp(min=0.0)
            latent = 160.0 * self.stomata(light, deficit) * deficit
            warm = (0.5 * light - latent) / (24.0 * self.wind + 6.0)
            leaf = 0.6 * leaf + 0.4 * (air + warm)
        return leaf


def weather(minutes):
    day = torch.arange(minutes) / 1440.0
    sun = 800.0 * torch.sin(2 * math.pi * (day - 0.25)).clamp(min=0.0)
    air = 18.0 + 7.0 * torch.sin(2 * math.pi * (day - 0.35))
    humidity = 0.65 - 0.2 * torch.sin(2 * math.pi * (day - 0.35))
    return air, humidity * LeafBalance.vapour(air), sun


class Diary:
    def __init__(self):
        self.lines = 0

    def write(self, minute, leaf, air):
        self.lines += 1
        over = (leaf - air).mean().item()
        print(f"minute {minute:5d}  air {air.item():6.2f}  leaf - air {over:+.3f}")


@torch.no_grad()
def main():
    torch.manual_seed(0)
    balance = LeafBalance(LEAVES, SWEEPS).eval()
    sweep = torch.compile(balance)
    air, supply, sun = weather(MINUTES)
    leaf = torch.full((LEAVES,), 18.0)
    for _ in range(WARMUP):
        leaf = sweep(leaf, air[0], supply[0], sun[0])

    diary = Diary()
    spent = 0.0
    block = 1440
    for begin in range(0, MINUTES, block):
        start = time.perf_counter()
        for k in range(begin, begin + block):
            leaf = sweep(leaf, air[k], supply[k], sun[k])
        spent += time.perf_counter() - start
        diary.write(begin + block, leaf, air[begin + block - 1])
    print(f"{1e3 * spent / MINUTES:.3f} ms per minute of weather")


if __name__ == "__main__":
    main()
