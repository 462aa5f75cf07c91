"""Separate the erased lower script of a parchment leaf from the upper one, tile by tile (12-band photographs)."""
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

BANDS, DIM, HEADS, WIN, SIDE = 12, 64, 4, 8, 32


def seam_mask(shift):
    region = torch.zeros(1, SIDE, SIDE, 1)
    tag = 0
    for rows in (slice(0, -WIN), slice(-WIN, -shift), slice(-shift, None)):
        for cols in (slice(0, -WIN), slice(-WIN, -shift), slice(-shift, None)):
            region[:, rows, cols, :] = tag
            tag += 1
    n = SIDE // WIN
    win = region.view(1, n, WIN, n, WIN, 1).permute(0, 1, 3, 2, 4, 5).reshape(-1, WIN * WIN)
    diff = win.unsqueeze(1) - win.unsqueeze(2)
    return torch.where(diff == 0, 0.0, -100.0)


class InkBlock(nn.Module):
    """Local attention between strokes; every second block looks across the window seams."""

    def __init__(self, shift):
        super().__init__()
        self.shift = shift
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.proj = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.up, self.down = nn.Linear(DIM, 2 * DIM), nn.Linear(2 * DIM, DIM)
        self.bias = nn.Parameter(0.02 * torch.randn(HEADS, WIN * WIN, WIN * WIN))
        self.register_buffer("mask", seam_mask(shift) if shift else None)

    def attend(self, x):
        b, h, w, c = x.shape
        if self.shift:
            x = torch.roll(x, (-self.shift, -self.shift), (1, 2))
        x = x.view(b, h // WIN, WIN, w // WIN, WIN, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, WIN * WIN, c)
        q, k, v = self.qkv(x).view(-1, WIN * WIN, 3, HEADS, c // HEADS).permute(2, 0, 3, 1, 4)
        score = (q * (c // HEADS) ** -0.5) @ k.transpose(-2, -1) + self.bias
        if self.shift:
            n = self.mask.shape[0]
            score = (score.view(-1, n, HEADS, WIN * WIN, WIN * WIN) + self.mask[None, :, None]).flatten(0, 1)
        x = self.proj((score.softmax(-1) @ v).transpose(1, 2).reshape(-1, WIN * WIN, c))
        x = x.view(b, h // WIN, w // WIN, WIN, WIN, c).permute(0, 1, 3, 2, 4, 5).reshape(b, h, w, c)
        if self.shift:
            x = torch.roll(x, (self.shift, self.shift), (1, 2))
        return x

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class ScriptSeparator(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(BANDS, DIM)
        self.blocks = nn.Sequential(InkBlock(0), InkBlock(WIN // 2), InkBlock(0))
        self.head = nn.Linear(DIM, 3)

    def forward(self, tile):
        od = -torch.log10(tile.clamp_min(0.02))
        return self.head(self.blocks(self.embed(od))).softmax(-1)


def photograph(leaf, n):
    """A tile of the leaf: bands differ in how far they see through the upper ink."""
    upper = F.avg_pool2d((leaf[:, :1] > 0.6).float(), 3, 1, 1)
    lower = F.avg_pool2d((leaf[:, 1:] > 0.7).float(), 3, 1, 1).roll(n % SIDE, 2)
    depth = torch.linspace(0.1, 0.9, BANDS).view(1, BANDS, 1, 1)
    return (1.0 - upper * (1 - depth) - 0.4 * lower * depth).permute(0, 2, 3, 1).contiguous()


def main():
    steps = int(os.environ.get("STEPS", "240"))
    torch.manual_seed(1229)
    separator = torch.compile(ScriptSeparator().eval())
    leaf = torch.rand(1, 2, SIDE, SIDE)
    share = torch.zeros(3)
    with torch.no_grad():
        for n in range(steps):
            probs = separator(photograph(leaf, n))
            share += probs.mean((0, 1, 2))
    share /= steps
    print(f"{steps} tiles: parchment {share[0]:.3f}, upper script {share[1]:.3f}, lower script {share[2]:.3f}")


if __name__ == "__main__":
    main()
