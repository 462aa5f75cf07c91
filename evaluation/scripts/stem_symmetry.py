"""Averages a 4-D STEM recording over the symmetries of its axes."""
import argparse
import itertools
import random

import torch
import torch.nn as nn


class Denoise(nn.Module):
    """A pointwise gain curve with a background that was fitted before."""

    def __init__(self, side):
        super().__init__()
        self.background = nn.Parameter(torch.rand(side, side, side, side) * 0.1)
        self.gain = nn.Parameter(torch.tensor(1.3))
        self.knee = nn.Parameter(torch.tensor(0.4))

    def forward(self, counts):
        signal = torch.log1p(counts) * self.gain - self.background
        soft = torch.sign(signal) * torch.relu(signal.abs() - self.knee)
        return soft * torch.sigmoid(4 * soft) + 0.1 * torch.sin(soft)


def symmetries(recording, seed):
    rng = random.Random(seed)
    orders = list(itertools.permutations(range(4)))
    while True:
        yield recording.permute(rng.choice(orders))


def main(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=20000)
    parser.add_argument("--side", type=int, default=20)
    args = parser.parse_args(argv)
    torch.manual_seed(6)
    recording = torch.poisson(torch.rand(args.side, args.side, args.side, args.side) * 5)
    clean = Denoise(args.side).eval()
    clean.compile()
    mean = torch.zeros_like(recording)
    with torch.inference_mode():
        for view in itertools.islice(symmetries(recording, 9), args.draws):
            mean.lerp_(clean(view), 0.01)
    print(f"signal {mean.mean().item():.4f}")


if __name__ == "__main__":
    main()
