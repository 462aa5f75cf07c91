"""Reads number plates: one picture brings a handful of candidate strips."""
import argparse
import random

import torch
import torch.nn as nn


class StripReader(nn.Module):
    def __init__(self, height=24, signs=36):
        super().__init__()
        self.blur = nn.Parameter(torch.full((height,), 0.3))
        self.signs = nn.Linear(height, signs)

    def clean(self, strip):
        level = strip.mean()
        spread = (strip - level).square().mean().sqrt() + 1e-4
        ink = torch.sigmoid(4 * (strip - level) / spread)
        edge = torch.roll(ink, 1, 1) - ink
        return torch.tanh(ink + self.blur.unsqueeze(1) * edge) * torch.exp(-edge * edge) + torch.sin(ink)

    def forward(self, strips):
        read = []
        for strip in strips:
            read.append(self.signs(self.clean(strip).T))
        found = torch.stack(read).softmax(-1)
        print("strips:", len(read), end="\r")
        return found.amax(-1).mean(-1)


def pictures(count, seed):
    rng = random.Random(seed)
    for _ in range(count):
        yield torch.rand(rng.randint(2, 11), 24, 400)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pictures", type=int, default=6000)
    parser.add_argument("--seed", type=int, default=12)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    reader = StripReader().eval()
    read = torch.compile(reader)
    sure = 0
    with torch.inference_mode():
        for picture in pictures(args.pictures, args.seed):
            sure += (read(picture) > 0.05).sum()
    print("\nsure of", int(sure))


if __name__ == "__main__":
    main()
