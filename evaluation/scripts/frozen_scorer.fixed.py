"""Serves a fraud scorer under frozen weights while a trainer refreshes them now and then."""
import os
import time

import torch
import torch.nn as nn

STEPS = int(os.environ.get("STEPS", 25000))
torch.set_num_threads(1)


class Scorer(nn.Module):
    def __init__(self, features=48, width=128):
        super().__init__()
        self.a = nn.Linear(features, width)
        self.b = nn.Linear(width, width)
        self.c = nn.Linear(width, 1)

    def forward(self, x):
        h = torch.nn.functional.silu(self.a(x)) + torch.sin(self.a(x))
        h = h + torch.tanh(self.b(h)) * torch.sigmoid(h)
        return torch.sigmoid(self.c(h)).squeeze(-1)


def refresh(net, gen):
    with torch.no_grad():
        for p in net.parameters():
            p.add_(0.05 * torch.randn(p.shape, generator=gen))


def main():
    torch.manual_seed(17)
    gen = torch.Generator().manual_seed(18)
    net = Scorer().eval()
    score = torch.compile(net)
    every = max(1, STEPS // 10)
    t0, s0 = None, 0
    panel = torch.randn(256, 48)
    with torch.no_grad():
        for step in range(STEPS):
            if step == 2:
                t0, s0 = time.perf_counter(), step
            risk = score(torch.randn(1024, 48))
            if step % 50 == 49:
                refresh(net, gen)
            if step > 2 and step % every == 0:
                ms = (time.perf_counter() - t0) / (step - s0) * 1e3
                print(f"{step}: mean risk {risk.mean():.4f}  panel risk {score(panel).mean():.6f}  {ms:.3f} ms/step")
                t0, s0 = time.perf_counter(), step


if __name__ == "__main__":
    main()
