"""Shift the pitch of practice recordings, block by block."""
import argparse

import torch

from stand.vocoder import Vocoder
from stand.blocks import practice


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=6000)
    parser.add_argument("--semitones", type=float, default=3.0)
    args = parser.parse_args()
    torch.manual_seed(0)
    vocoder = Vocoder(bins=257, ratio=2 ** (args.semitones / 12)).eval()
    vocoder.compile()
    with torch.no_grad():
        for n, (size, angle) in enumerate(practice(args.blocks, bins=257, frames=240)):
            out, turned = vocoder(size, angle)
            if n % 500 == 0:
                print(f"block {n}: peak {vocoder.peak:.3f} mean {out.mean().item():.4f}")


if __name__ == "__main__":
    main()
