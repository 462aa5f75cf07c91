"""Estimate the pitch of short clips that come in many lengths."""
import argparse
import random

import torch

from clips import PitchNet, clip_lengths


def clips(rng, lengths):
    stored = {n: torch.randn(256, n).mul_(0.3) for n in lengths}
    while True:
        yield stored[rng.choice(lengths)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--clips", type=int, default=24000)
    args = parser.parse_args()
    torch.manual_seed(0)
    lengths = clip_lengths()
    net = PitchNet(lengths).eval()
    pitch = torch.compile(net)
    total = torch.zeros(())
    with torch.inference_mode():
        for _, clip in zip(range(args.clips), clips(random.Random(2), lengths)):
            total += pitch(clip).mean()
    print("mean pitch", total.item() / max(args.clips, 1))


if __name__ == "__main__":
    main()
