"""Teach a small network to find cracks in photographs of concrete."""
import argparse
import contextlib

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode


class Ridge(nn.Module):
    """A channel-wise filter bank followed by a chain of gates."""

    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width, 1, 1))
        self.shift = nn.Parameter(torch.zeros(width, 1, 1))
        self.gain = nn.Parameter(torch.full((width, 1, 1), 0.3))

    def forward(self, h):
        n = (h - h.mean((2, 3), keepdim=True)) * torch.rsqrt(h.var((2, 3), keepdim=True) + 1e-4)
        n = n * self.scale + self.shift
        return h + self.gain * F.hardswish(n) * torch.sigmoid(n - 0.5 * n.abs())


class CrackFinder(nn.Module):
    def __init__(self, width=12, depth=4):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, padding=1, stride=2)
        self.ridges = nn.ModuleList(Ridge(width) for _ in range(depth))
        self.head = nn.Conv2d(width, 1, 1)

    def forward(self, photo):
        h = self.stem(photo)
        for ridge in self.ridges:
            h = ridge(h)
        return self.head(h)


class Budget:
    """What the training has cost so far, for the model card."""

    def __init__(self):
        self.counter = FlopCounterMode(display=False)

    def __enter__(self):
        self.counter.__enter__()
        return self

    def __exit__(self, *exc):
        return self.counter.__exit__(*exc)

    @property
    def gigaflops(self):
        return self.counter.get_total_flops() / 1e9


def concrete(count, side, seed=3):
    draw = torch.Generator().manual_seed(seed)
    photos = torch.rand(count, 1, side, side, generator=draw)
    cracks = F.avg_pool2d((photos > 0.97).float(), 2)
    return photos, cracks


def train(model, photos, cracks, steps, batch):
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    for step in range(steps):
        rows = torch.arange(step * batch, (step + 1) * batch) % len(photos)
        loss = F.binary_cross_entropy_with_logits(model(photos[rows]), cracks[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 200 == 199:
            print(f"step {step + 1} loss {loss.item():.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--no-budget", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    model = torch.compile(CrackFinder())
    photos, cracks = concrete(64, 96)
    with contextlib.nullcontext() if args.no_budget else Budget() as budget:
        train(model, photos, cracks, args.steps, args.batch)
    if budget:
        print(f"spent {budget.gigaflops:.1f} GFLOP")


if __name__ == "__main__":
    main()
