"""Tag suggestions for scanned herbarium sheets.

The image encoder ran elsewhere; this job reads its descriptors, refines them
with a small residual tower and writes the best tags for every sheet.
"""
import os
import time

import torch
from torch import nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(3)

DTYPE = torch.float16
DESCRIPTOR = 320
HIDDEN = 320
TAGS = 160
SHEETS = 160
STEPS = int(os.environ.get("STEPS", "4000"))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, width)
        self.gain = nn.Parameter(torch.full((width,), 0.5))

    def forward(self, x):
        return x + self.gain * F.gelu(self.up(self.norm(x)))


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(DESCRIPTOR, HIDDEN)
        self.blocks = nn.ModuleList(Block(HIDDEN) for _ in range(3))
        self.norm = nn.LayerNorm(HIDDEN)
        self.out = nn.Linear(HIDDEN, TAGS)

    def forward(self, descriptors):
        x = self.inp(descriptors)
        for block in self.blocks:
            x = block(x)
        return torch.sigmoid(self.out(self.norm(x)))


def read_batches(n):
    return [torch.randn(SHEETS, DESCRIPTOR).to(DTYPE) for _ in range(n)]


def main():
    tagger = Tagger().eval().to(DTYPE)
    suggest = torch.compile(tagger)
    batches = read_batches(8)
    usage = torch.zeros(TAGS)
    started = time.perf_counter()
    with torch.no_grad():
        for step in range(STEPS):
            scores = suggest(batches[step % len(batches)])
            usage += scores.float().mean(0)
            if step % 500 == 0:
                best = usage.topk(3).indices.tolist()
                print(f"{step:5d}  favourite tags {best}  {time.perf_counter() - started:.1f}s")


if __name__ == "__main__":
    main()
