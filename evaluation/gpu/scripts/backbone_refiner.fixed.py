"""Recurrent refinement of a coarse protein backbone trace.

One transformer block with shared weights is applied again and again to the
residue features; after each pass a small head nudges the coordinates.
"""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

small = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = int(os.environ.get("STEPS", 3000))
WIDTH, HEADS, PASSES = (128, 4, 4) if small else (4096, 32, 8)
RESIDUES = 64 if small else 128


class RefineBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.proj = nn.Linear(width, width, bias=False)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, h):
        b, n, w = h.shape
        q, k, v = self.qkv(self.norm1(h)).view(b, n, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v)
        h = h + self.proj(a.transpose(1, 2).reshape(b, n, w))
        return h + self.down(F.gelu(self.up(self.norm2(h))))


class Refiner(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(12, WIDTH)
        self.block = RefineBlock(WIDTH, HEADS)
        self.nudge = nn.Linear(WIDTH, 3)

    def forward(self, features, xyz):
        h = self.embed(features)
        for _ in range(PASSES):
            h = self.block(h)
            xyz = xyz + 0.1 * self.nudge(h).float()
        return xyz


def main():
    torch.manual_seed(11)
    net = Refiner().to(device).eval().bfloat16()
    net.block = torch.compile(net.block)
    features = torch.randn(1, RESIDUES, 12, device=device)
    xyz = torch.randn(1, RESIDUES, 3, device=device)
    began = time.perf_counter()
    for step in range(STEPS):
        with torch.no_grad(), torch.autocast(device, dtype=torch.bfloat16):
            moved = net(features.bfloat16(), xyz)
        xyz = 0.9 * xyz + 0.1 * moved
        features = features.roll(1, dims=1)
        if step % 300 == 0:
            radius = (xyz - xyz.mean(1, keepdim=True)).norm(dim=-1).mean()
            print(f"round {step:5d} radius of gyration {radius.item():.3f} "
                  f"({time.perf_counter() - began:.1f} s)")


if __name__ == "__main__":
    main()
