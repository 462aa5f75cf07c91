"""Cleans radio spectra kept in host memory, block after block."""
import argparse
from dataclasses import dataclass

import torch
from torch import nn

DEVICE = torch.device("cuda")


@dataclass
class Archive:
    blocks: torch.Tensor      # (blocks, channels, samples)

    def __iter__(self):
        i = 0
        while True:
            yield self.blocks[i % len(self.blocks)].to(DEVICE)
            i += 1


class Cleaner(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(channels, 1))
        self.floor = nn.Parameter(torch.zeros(channels, 1))

    def forward(self, block):
        x = (block - self.floor) * self.gain
        level = x.abs().mean(-1, keepdim=True)
        x = level * torch.tanh(x / (3 * level + 1e-6))
        x = x * torch.sigmoid(x.square() - level.square())
        return x.mean(-1), x.square().mean(-1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=1500)
    args = ap.parse_args()
    torch.manual_seed(14)
    archive = Archive(torch.randn(12, 1024, 16384))
    cleaner = torch.compile(Cleaner(1024).to(DEVICE).eval())
    mean_power = torch.zeros(1024, device=DEVICE)
    stream = iter(archive)
    with torch.no_grad():
        for step in range(args.steps):
            centre, power = cleaner(next(stream))
            mean_power = 0.98 * mean_power + 0.02 * power
            if step % 250 == 0:
                print(f"block {step:5d} power {mean_power.mean().item():.5f}")


if __name__ == "__main__":
    main()
