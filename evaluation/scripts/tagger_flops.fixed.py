"""Tags log lines with a gated conv net; keeps a running FLOP count for the cost report."""
import os
import time

import torch
import torch.nn as nn
from torch.utils.flop_counter import FlopCounterMode

STEPS = int(os.environ.get("STEPS", 3000))
torch.set_num_threads(1)


class GatedBlock(nn.Module):
    def __init__(self, dim, kernel=3):
        super().__init__()
        self.kernel = kernel
        self.proj = nn.Linear(dim, 2 * dim)
        self.decay = nn.Parameter(torch.zeros(dim))
        self.norm = nn.LayerNorm(dim)

    def forward(self, x):
        a, g = self.proj(self.norm(x)).chunk(2, -1)
        prev = torch.nn.functional.pad(x, (0, 0, 1, 0))[:, :-1]
        mix = torch.sigmoid(self.decay)
        return x + torch.tanh(a) * torch.sigmoid(g) * mix + (1 - mix) * prev * torch.sigmoid(a)


class Tagger(nn.Module):
    def __init__(self, vocab=512, dim=64, depth=4, tags=9):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList(GatedBlock(dim) for _ in range(depth))
        self.out = nn.Linear(dim, tags)

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.out(x).log_softmax(-1)


def main():
    torch.manual_seed(9)
    tagger = torch.compile(Tagger().eval())
    counts = torch.zeros(9)
    every = max(1, STEPS // 10)
    t0, s0 = None, 0
    meter = FlopCounterMode(display=False)
    with torch.no_grad(), meter:
        tagger(torch.randint(0, 512, (16, 64)))
    with torch.no_grad():
        for step in range(STEPS):
            if step == 2:
                t0, s0 = time.perf_counter(), step
            ids = torch.randint(0, 512, (16, 64))
            tags = tagger(ids).argmax(-1)
            counts += torch.bincount(tags.flatten(), minlength=9)
            if step > 2 and step % every == 0:
                ms = (time.perf_counter() - t0) / (step - s0) * 1e3
                print(f"{step} batches, {step * meter.get_total_flops() / 1e9:.1f} GFLOP, top tag {int(counts.argmax())}  {ms:.3f} ms/step")
                t0, s0 = time.perf_counter(), step


if __name__ == "__main__":
    main()
