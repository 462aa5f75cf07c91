"""Live acoustic monitoring of a few bee hives.

Microphones deliver overlapping log-mel windows; a small transformer rates every
window as queenright / queenless / swarming.  A smoothed level per hive decides
whether the keeper gets a message.
"""
import os
import time
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

device = torch.device("cuda")


@dataclass
class Settings:
    hives: int = 8
    frames: int = 96
    mels: int = 64
    width: int = 256
    heads: int = 4
    depth: int = 16
    classes: int = 3
    windows: int = int(os.environ.get("STEPS", "700"))
    smoothing: float = 0.05


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before_mix = nn.LayerNorm(width)
        self.before_mlp = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.wide = nn.Linear(width, 3 * width)
        self.narrow = nn.Linear(3 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.before_mix(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v)
        x = x + self.proj(mixed.transpose(1, 2).reshape(b, t, c))
        return x + self.narrow(F.gelu(self.wide(self.before_mlp(x))))


class HiveListener(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embed = nn.Linear(cfg.mels, cfg.width)
        self.place = nn.Parameter(0.02 * torch.randn(cfg.frames, cfg.width))
        self.layers = nn.ModuleList(Layer(cfg.width, cfg.heads) for _ in range(cfg.depth))
        self.norm = nn.LayerNorm(cfg.width)
        self.rate = nn.Linear(cfg.width, cfg.classes)

    def forward(self, spectrum):
        x = self.embed(spectrum) + self.place
        for layer in self.layers:
            x = layer(x)
        return self.rate(self.norm(x).mean(dim=1))


class Microphones:
    """Stands in for the capture card: a ring of recorded windows on the device."""

    def __init__(self, cfg, ring=32):
        self.ring = torch.randn(ring, cfg.hives, cfg.frames, cfg.mels, device=device).bfloat16()

    def window(self, index):
        return self.ring[index % self.ring.shape[0]]


class Keeper:
    def __init__(self, cfg):
        self.level = torch.zeros(cfg.hives, cfg.classes, device=device)
        self.smoothing = cfg.smoothing

    def observe(self, scores):
        self.level.lerp_(scores.detach().float().softmax(dim=-1), self.smoothing)

    def report(self):
        return self.level.argmax(dim=-1).tolist()


@torch.no_grad()
def monitor(cfg):
    listener = HiveListener(cfg).to(device, torch.bfloat16).eval()
    rate = torch.compile(listener, mode="reduce-overhead")
    source = Microphones(cfg)
    keeper = Keeper(cfg)

    for index in range(cfg.windows):
        if index == 20:
            torch.cuda.synchronize()
            opened = time.perf_counter()
        scores = rate(source.window(index))
        keeper.observe(scores)
        if index % 100 == 99:
            print(f"window {index + 1:4d}: states {keeper.report()}")

    torch.cuda.synchronize()
    spent = time.perf_counter() - opened
    print(f"{1e3 * spent / (cfg.windows - 20):.3f} ms per window")


if __name__ == "__main__":
    torch.manual_seed(5)
    monitor(Settings())
