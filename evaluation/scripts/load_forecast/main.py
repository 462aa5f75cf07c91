"""Forecast the load of a power grid from its last three days."""
import argparse

import torch

from grid.model import LoadNet
from grid.trainer import Trainer


def history(feeders=40, hours=3000):
    t = torch.arange(hours) / 24
    day = torch.sin(2 * torch.pi * (t + torch.rand(feeders, 1)))
    week = torch.cos(2 * torch.pi * t / 7)
    return 1 + 0.4 * day + 0.2 * week + 0.05 * torch.randn(feeders, hours)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--hours", type=int, default=72)
    args = parser.parse_args()
    torch.manual_seed(0)
    trainer = Trainer(LoadNet())
    trainer.fit(history(), args.hours, args.steps)


if __name__ == "__main__":
    main()
