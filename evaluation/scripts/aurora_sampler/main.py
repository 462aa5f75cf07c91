"""Draws skies with auroras by a small diffusion sampler."""
import argparse
import time

import torch

from kit import Bar


class Sampler:
    def __init__(self, steps, side):
        torch.manual_seed(2)
        self.levels = torch.linspace(1.0, 0.05, steps)
        self.curve = torch.tensor([1.3, 0.1])
        self.side = side

    @torch.compile
    def paint(self, sky):
        for number in Bar(len(self.levels)):
            drift = sky * self.curve[0] + self.curve[1]
            glow = drift / (1.0 + drift.square())
            glow = torch.relu(glow + 0.2) - 0.3 * glow.abs()
            sky = sky - self.levels[number] * (sky - glow) * 0.1
        bright = (sky > 2.0).float().mean((1, 2))
        return sky, self.rank(bright)

    def rank(self, bright):
        return bright[bright > 0.01]

    @torch.inference_mode()
    def sample(self, count):
        return self.paint(torch.randn(count, self.side, self.side))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--skies", type=int, default=6000)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--side", type=int, default=160)
    args = parser.parse_args()
    sampler = Sampler(args.steps, args.side)
    start = time.perf_counter()
    for number in range(args.skies):
        skies, bright = sampler.sample(6)
        if number % 300 == 0:
            print(f"sky {number}: {len(bright)} bright, {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
