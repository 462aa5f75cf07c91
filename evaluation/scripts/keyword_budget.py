"""Train a small keyword spotter and report how much arithmetic the run has spent."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

torch.manual_seed(0)

WORDS = 12
FRAMES = 64
MELS = 40
STEPS = int(os.environ.get("STEPS", "900"))
LOG = 50


class GatedMix(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.value = nn.Linear(width, width)
        self.gate = nn.Linear(width, width)
        self.scale = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        v = self.value(x)
        g = torch.sigmoid(self.gate(x))
        h = torch.asinh(v) * g + x * (1 - g)
        mu = h.mean(-1, keepdim=True)
        sd = (h - mu).square().mean(-1, keepdim=True).add(1e-5).sqrt()
        return self.scale * (h - mu) / sd + self.shift


class Spotter(nn.Module):
    def __init__(self, width=64, depth=4):
        super().__init__()
        self.inp = nn.Linear(MELS, width)
        self.blocks = nn.ModuleList(GatedMix(width) for _ in range(depth))
        self.out = nn.Linear(width, WORDS)

    def forward(self, mel):
        x = self.inp(torch.log1p(mel))
        for b in self.blocks:
            x = b(x)
        pooled = torch.logsumexp(x, dim=1) - x.mean(1)
        return self.out(pooled)


def batches(n=8, size=10):
    proto = torch.rand(WORDS, FRAMES, MELS)
    for _ in range(n):
        y = torch.randint(0, WORDS, (size,))
        yield proto[y] + 0.3 * torch.rand(size, FRAMES, MELS), y


def main():
    net = torch.compile(Spotter())
    opt = torch.optim.SGD(net.parameters(), lr=0.002, momentum=0.9)
    data = list(batches())
    budget = FlopCounterMode(display=False)
    t0 = time.perf_counter()
    with budget:
        for step in range(1, STEPS + 1):
            mel, word = data[step % len(data)]
            loss = F.cross_entropy(net(mel), word)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            if step % LOG == 0:
                dt = (time.perf_counter() - t0) / LOG * 1e3
                gflop = budget.get_total_flops() / 1e9
                print(f"step {step} loss {loss.item():.4f} spent {gflop:.1f} GFLOP {dt:.3f} ms/step")
                t0 = time.perf_counter()


if __name__ == "__main__":
    main()
