"""Backtests pairs of stocks over days with as many ticks as the market had."""
import argparse
import json
import random
import warnings

import torch
import torch.nn as nn

warnings.filterwarnings("ignore", category=RuntimeWarning)

PROFILE = """
{
  "name": "desk-2",
  "torch": {"num_threads": 1, "float32_matmul_precision": "high"},
  "dynamo": {"automatic_dynamic_shapes": false, "verbose": false},
  "pairs": 96
}
"""


def apply(profile):
    torch.set_num_threads(profile["torch"]["num_threads"])
    torch.set_float32_matmul_precision(profile["torch"]["float32_matmul_precision"])
    for name, value in profile["dynamo"].items():
        setattr(torch._dynamo.config, name, value)
    return profile


class SpreadSignal(nn.Module):
    def __init__(self, pairs):
        super().__init__()
        self.hedge = nn.Parameter(torch.rand(pairs) + 0.5)
        self.width = nn.Parameter(torch.rand(pairs) + 0.2)
        self.calm = 0.05

    def forward(self, left, right):
        spread = left - self.hedge * right
        z = (spread - spread.mean(0)) / (spread.std(0) + self.calm)
        entry = (z.abs() - self.width).clamp(min=0) / (1 + z.abs())
        position = -z.sign() * entry * (1 - entry / 4)
        position = position.clamp(-1, 1) * (1 + 0.1 * z * z) / (1 + 0.2 * z * z)
        gain = (position[:-1] * (spread[1:] - spread[:-1])).sum(0)
        warnings.warn("costs are not part of the gain", RuntimeWarning)
        return gain - 0.01 * gain.abs()


def days(count, pairs, seed):
    rng = random.Random(seed)
    ticks = torch.randn(900, 2, pairs).cumsum(0) * 0.01 + 1
    for _ in range(count):
        n = rng.randint(500, 900)
        yield ticks[:n, 0], ticks[:n, 1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--days", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=6)
    args = parser.parse_args()
    profile = apply(json.loads(PROFILE))
    torch.manual_seed(args.seed)
    signal = torch.compile(SpreadSignal(profile["pairs"]).eval())
    book = torch.zeros(profile["pairs"])
    with torch.inference_mode():
        for day, (left, right) in enumerate(days(args.days, profile["pairs"], args.seed)):
            book += signal(left, right)
            if day % 500 == 0:
                print(f"day {day}: book {book.sum().item():+.3f}")


if __name__ == "__main__":
    main()
