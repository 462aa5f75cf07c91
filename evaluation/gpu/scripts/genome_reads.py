"""Calls the quality of DNA reads, a bundle of equally long ones at a time."""

import argparse
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda")


class Gate(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        value, gate = self.up(self.norm(x)).chunk(2, dim=-1)
        around = value + 0.5 * (F.pad(value, (0, 0, 1, 0))[:, :-1] + F.pad(value, (0, 0, 0, 1))[:, 1:])
        return x + self.down(around * torch.sigmoid(gate))


class Caller(nn.Module):
    def __init__(self, width: int = 128, depth: int = 6) -> None:
        super().__init__()
        self.bases = nn.Embedding(8, width)
        self.gates = nn.ModuleList(Gate(width) for _ in range(depth))
        self.quality = nn.Linear(width, 1)

    def forward(self, reads: torch.Tensor) -> torch.Tensor:
        x = self.bases(reads)
        for gate in self.gates:
            x = gate(x)
        return self.quality(x).squeeze(-1).sigmoid().mean(-1)


class Run:
    """A sequencer's run: bundles of reads, each bundle with the length that its reads have."""

    def __init__(self, bundles: int, seed: int) -> None:
        self.bundles = bundles
        self.dice = random.Random(seed)
        self.bases = torch.randint(0, 5, (32, 1600), device=device)

    def __iter__(self):
        for _ in range(self.bundles):
            length = self.dice.randrange(100, 1500)
            start = self.dice.randrange(0, 1600 - length)
            yield self.bases[:, start : start + length].contiguous()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bundles", type=int, default=100_000)
    args = parser.parse_args()
    torch.manual_seed(3)
    caller = Caller().to(device, torch.bfloat16).eval()
    call = torch.compile(caller, mode="reduce-overhead", dynamic=True)
    good = torch.zeros((), device=device)
    with torch.inference_mode():
        for reads in Run(args.bundles, seed=3):
            good += (call(reads) > 0.5).sum()
    print("good reads:", int(good))


if __name__ == "__main__":
    main()
