"""Rectifies satellite tiles by a learned smooth warp and blends them."""
import argparse

import torch
import torch.nn.functional as F
from torch import nn


sample = torch.compiler.disable(F.grid_sample)


class Warp(nn.Module):
    def __init__(self, height, width, coarse=6):
        super().__init__()
        ys = torch.linspace(-1, 1, height)
        xs = torch.linspace(-1, 1, width)
        gy, gx = torch.meshgrid(ys, xs, indexing="ij")
        self.register_buffer("base", torch.stack([gx, gy], -1)[None])
        self.offsets = nn.Parameter(0.05 * torch.randn(1, 2, coarse, coarse))

    def field(self):
        size = self.base.shape[1:3]
        fine = F.interpolate(self.offsets, size=size, mode="bilinear", align_corners=True)
        return self.base + fine.permute(0, 2, 3, 1)

    def forward(self, tiles):
        grid = self.field().expand(tiles.shape[0], -1, -1, -1)
        return sample(tiles, grid, mode="bilinear", padding_mode="border", align_corners=True)


class Mosaic(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.warp = Warp(size, size)
        self.gain = nn.Parameter(torch.ones(12, 1, 1))
        self.haze = nn.Parameter(torch.zeros(12, 1, 1))

    def forward(self, tiles):
        clean = (tiles - self.haze).clamp_min(0.0) * self.gain
        return self.warp(clean)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=4300)
    ap.add_argument("--size", type=int, default=96)
    args = ap.parse_args()
    torch.manual_seed(3)

    mosaic = torch.compile(Mosaic(args.size).eval())
    archive = torch.rand(64, 12, args.size, args.size)
    canvas = torch.zeros(12, args.size, args.size)
    with torch.no_grad():
        for step in range(args.steps):
            first = (step * 4) % 64
            warped = mosaic(archive[first:first + 4])
            canvas.mul_(0.95).add_(warped.mean(0), alpha=0.05)
            if step % 200 == 0:
                print(step, f"canvas mean {canvas.mean():.5f}")
    print("done", canvas.std().item())


if __name__ == "__main__":
    main()
