"""Blossom density maps from drone tiles of an orchard.

A light stem, a context block that looks at growing neighbourhoods, and a
density head that is trained against counted blossoms per cell.
"""
import os
import time

import torch
from torch import nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(8)

TILE = 64
BATCH = 4
WIDTH = 32
STEPS = int(os.environ.get("STEPS", "4000"))


class ConvNormAct(nn.Module):
    def __init__(self, cin, cout, k=3, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, k, stride, k // 2, bias=False)
        self.norm = nn.BatchNorm2d(cout)

    def forward(self, x):
        return F.silu(self.norm(self.conv(x)))


class Context(nn.Module):
    """Blends the features with their local maxima at three scales."""

    def __init__(self, width):
        super().__init__()
        self.reduce = ConvNormAct(width, width, 1)
        self.pool = nn.Sequential(
            nn.MaxPool2d((5, 1), stride=1, padding=(2, 0)),
            nn.MaxPool2d((1, 5), stride=1, padding=(0, 2)),
        )
        self.blend = nn.Parameter(0.25 * torch.ones(4, width, 1, 1))

    def forward(self, x):
        x = self.reduce(x)
        p1 = self.pool(x)
        p2 = self.pool(p1)
        p3 = self.pool(p2)
        b = self.blend
        return b[0] * x + b[1] * p1 + b[2] * p2 + b[3] * p3


class BlossomNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = ConvNormAct(3, WIDTH, 3, stride=2)
        self.context = Context(WIDTH)
        self.head = nn.Conv2d(WIDTH, 1, 1)

    def forward(self, tiles):
        return F.softplus(self.head(self.context(self.stem(tiles))))


def counted_tiles(n):
    out = []
    for _ in range(n):
        tiles = torch.rand(BATCH, 3, TILE, TILE)
        density = F.avg_pool2d(tiles[:, :1], 2) + 0.1 * torch.rand(BATCH, 1, TILE // 2, TILE // 2)
        out.append((tiles, density))
    return out


def main():
    net = BlossomNet().train()
    forward = torch.compile(net)
    opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, fused=True)
    data = counted_tiles(6)
    started = time.perf_counter()
    for step in range(STEPS):
        tiles, density = data[step % len(data)]
        loss = F.smooth_l1_loss(forward(tiles), density)
        loss.backward()
        opt.step()
        opt.zero_grad()
        if step % 500 == 0:
            print(f"{step:5d}  loss {loss.item():.5f}  {time.perf_counter() - started:.1f}s")


if __name__ == "__main__":
    main()
