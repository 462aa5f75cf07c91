"""Segments reef photographs; memory is kept tidy around every step."""
import argparse
import gc
from contextlib import contextmanager

import torch
from torch import nn
import torch.nn.functional as F

DEVICE = "cuda"


@contextmanager
def tidy():
    """Nothing left behind by a step may reach the next one."""
    try:
        yield
    finally:
        gc.collect()
        torch.cuda.empty_cache()


class Stage(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3, padding=1)
        self.norm = nn.GroupNorm(8, cout)

    def forward(self, x):
        return F.silu(self.norm(self.conv(x)))


class ReefNet(nn.Module):
    def __init__(self, classes=6):
        super().__init__()
        self.a, self.b, self.c = Stage(3, 32), Stage(32, 64), Stage(64, 64)
        self.head = nn.Conv2d(64, classes, 1)

    def forward(self, x):
        x = self.a(x)
        x = self.c(self.b(F.avg_pool2d(x, 2)))
        return F.interpolate(self.head(x), scale_factor=2.0)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=2000)
    args = ap.parse_args()
    torch.manual_seed(11)
    torch.set_float32_matmul_precision("high")
    net = ReefNet().to(DEVICE)
    optimiser = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    segment = torch.compile(net)
    photos = torch.rand(64, 3, 96, 96, device=DEVICE)
    kinds = (photos.mean(1) * 6).long().clamp_(0, 5)
    for step in range(args.steps):
        lo = (step * 8) % 64
        with tidy():
            loss = F.cross_entropy(segment(photos[lo:lo + 8]), kinds[lo:lo + 8])
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            report = loss.detach()
        if step % 200 == 0:
            print(f"step {step:5d} loss {report.item():.4f}")


if __name__ == "__main__":
    main()
