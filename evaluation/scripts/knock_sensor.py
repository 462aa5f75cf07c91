"""Listen for knocking in an engine: a streaming filter bank with its history in buffers."""
import argparse
import math

import torch
import torch.nn as nn


class KnockDetector(nn.Module):
    def __init__(self, cylinders=96, block=8192, taps=12):
        super().__init__()
        self.taps = taps
        angle = torch.arange(taps) * math.pi / taps
        self.register_buffer("kernel", torch.cos(3 * angle) * torch.hann_window(taps, periodic=False))
        self.register_buffer("tail", torch.zeros(cylinders, taps - 1))
        self.register_buffer("floor", torch.full((cylinders, 1), 0.1))
        self.register_buffer("blocks", torch.zeros((), dtype=torch.long))

    def forward(self, sound):
        long = torch.cat((self.tail, sound), 1)
        size = sound.shape[1]
        band = long[:, :size] * self.kernel[0]
        for tap in range(1, self.taps):
            band = band + long[:, tap:tap + size] * self.kernel[tap]
        strength = band.square()
        above = torch.relu(strength - 3 * self.floor) / (1 + strength)
        knock = above.mean(1)
        self.tail.copy_(sound[:, -(self.taps - 1):])
        self.floor.lerp_(strength.mean(1, keepdim=True), 0.02)
        self.blocks.add_(1)
        return knock


def engine(cylinders, block, seed=7):
    draw = torch.Generator().manual_seed(seed)
    kept = torch.randn(6, cylinders, block, generator=draw)
    while True:
        yield from kept


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=12000)
    args = parser.parse_args()
    detector = KnockDetector().eval()
    detector.compile()
    loudest = torch.zeros(96)
    with torch.inference_mode():
        for n, sound in zip(range(args.blocks), engine(96, 8192)):
            loudest = torch.maximum(loudest, detector(sound))
            if n % 1000 == 999:
                print(f"{int(detector.blocks)} blocks, loudest {loudest.max().item():.3f}")


if __name__ == "__main__":
    main()
