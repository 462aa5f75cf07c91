"""Nightly embedding of product photos of shoes for visual search."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

PHOTOS = int(os.environ.get("PHOTOS", "3200"))
BATCH = 64
DEV = "cuda"


class FilmBlock(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.dw = nn.Conv2d(ch, ch, 3, padding=1, groups=ch)
        self.scale = nn.Parameter(torch.ones(ch, 1, 1))
        self.shift = nn.Parameter(torch.zeros(ch, 1, 1))

    def forward(self, x):
        h = self.dw(x)
        h = (h - h.mean(1, keepdim=True)) * torch.rsqrt(h.var(1, keepdim=True) + 1e-6)
        h = h * self.scale + self.shift
        h = h * torch.sigmoid(1.702 * h)
        h = torch.where(h > 3.0, 3.0 + torch.log1p((h - 3.0).clamp(min=0)), h)
        return x + 0.2 * h


class ShoeNet(nn.Module):
    def __init__(self, ch=64, depth=4):
        super().__init__()
        self.stem = nn.Conv2d(3, ch, 4, stride=4)
        self.blocks = nn.Sequential(*[FilmBlock(ch) for _ in range(depth)])
        self.proj = nn.Linear(ch, 128)
        self.classes = nn.Linear(128, 40)

    def encode(self, photo):
        h = self.blocks(self.stem(photo))
        return F.normalize(self.proj(h.mean((2, 3))), dim=-1)

    def forward(self, photo):
        return self.classes(self.encode(photo))


@torch.inference_mode()
def main():
    torch.manual_seed(4)
    net = ShoeNet().to(DEV).eval()
    net = torch.compile(net)
    photos = torch.randn(4, BATCH, 3, 384, 384, device=DEV)
    centre = torch.zeros(128, device=DEV)
    t0 = time.time()
    for i in range(PHOTOS):
        vec = net.encode(photos[i % 4])
        centre += vec.mean(0)
        if i % 400 == 0:
            print(f"batch {i} |centre| {centre.norm().item():.3f} {time.time() - t0:.1f}s")
    print("done", f"{time.time() - t0:.1f}s")


if __name__ == "__main__":
    main()
