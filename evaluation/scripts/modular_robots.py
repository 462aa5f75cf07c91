"""One policy for robots that are put together from different parts."""
import argparse
import random
import time
from collections import defaultdict

import torch
import torch.nn as nn

SENSORS = {"gyro": 24, "feet": 48, "camera": 64, "arms": 32, "sonar": 16, "tail": 8}


class Laps:
    """How long the parts of a step took."""

    def __init__(self):
        self.spent = defaultdict(float)
        self.last = time.perf_counter()

    def lap(self, name):
        now = time.perf_counter()
        self.spent[name] += now - self.last
        self.last = now


class Policy(nn.Module):
    def __init__(self, laps, width=192):
        super().__init__()
        self.laps = laps
        self.encoders = nn.ModuleDict({name: nn.Linear(size, width) for name, size in SENSORS.items()})
        self.bend = nn.Parameter(torch.randn(width))
        self.out = nn.Linear(width, 12)

    def merge(self, parts):
        total = 0
        for name, reading in parts.items():
            h = self.encoders[name](reading)
            total = total + torch.tanh(h) * torch.exp(-0.1 * h.square()) + torch.sin(h * self.bend)
        return total

    def forward(self, parts):
        h = self.merge(parts)
        h = torch.sigmoid(h) * torch.tanh(h) + torch.cos(self.bend * h)
        action = torch.tanh(self.out(h))
        self.laps.lap("policy")
        return action * 0.8


class Workshop:
    def __init__(self, robots, seed=0):
        self.rng = random.Random(seed)
        self.robots = robots

    def assemble(self):
        names = self.rng.sample(list(SENSORS), self.rng.randint(2, 5))
        return {name: torch.randn(self.robots, SENSORS[name]) for name in sorted(names)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=12000)
    parser.add_argument("--robots", type=int, default=256)
    args = parser.parse_args()
    torch.manual_seed(5)
    laps, workshop = Laps(), Workshop(args.robots)
    policy = torch.compile(Policy(laps).eval())
    moved = torch.zeros(12)
    with torch.inference_mode():
        for _ in range(args.trials):
            moved += policy(workshop.assemble()).mean(0)
    print(moved.norm().item(), dict(laps.spent))


if __name__ == "__main__":
    main()
