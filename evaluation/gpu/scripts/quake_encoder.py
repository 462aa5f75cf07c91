"""Bulk embedding of seismograms for a similarity catalogue.

Three-component traces are cut into patches and encoded by a bf16 transformer with
normalised queries and keys; only the pooled embedding is kept.
"""
import os
import math
import time

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda"

STATIONS = 6          # traces encoded at once
SAMPLES = 32_768      # per component
PATCH = 16
WIDTH = 1024
HEADS = 16
DEPTH = 4
BATCHES = int(os.environ.get("STEPS", "1200"))


class HeadNorm(nn.Module):
    """RMS normalisation over the channels of one head, statistics in fp32."""

    def __init__(self, channels, eps=1e-6):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(channels))
        self.eps = eps

    def forward(self, x):
        wide = x.float()
        inverse = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + self.eps)
        return wide * inverse * self.scale.float()


class Rotation(nn.Module):
    """Rotary phases for the patch index (half-split convention)."""

    def __init__(self, tokens, channels, base=10_000.0):
        super().__init__()
        rate = base ** (-torch.arange(0, channels, 2).float() / channels)
        angle = torch.outer(torch.arange(tokens).float(), rate)
        self.register_buffer("cos", torch.cat([angle.cos(), angle.cos()], dim=-1))
        self.register_buffer("sin", torch.cat([angle.sin(), angle.sin()], dim=-1))

    def forward(self, x):
        low, high = x.chunk(2, dim=-1)
        turned = torch.cat([-high, low], dim=-1)
        return x * self.cos.to(x.dtype) + turned * self.sin.to(x.dtype)


class Attention(nn.Module):
    def __init__(self, width, heads, tokens):
        super().__init__()
        self.heads = heads
        channels = width // heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.norm_q = HeadNorm(channels)
        self.norm_k = HeadNorm(channels)
        self.rotate = Rotation(tokens, channels)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q = self.rotate(self.norm_q(q))
        k = self.rotate(self.norm_k(k))
        mixed = F.scaled_dot_product_attention(q, k, v.to(q.dtype))
        mixed = mixed.transpose(1, 2).reshape(b, t, c)
        return self.out(mixed.to(x.dtype))


class Block(nn.Module):
    def __init__(self, width, heads, tokens):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.norm2 = nn.LayerNorm(width)
        self.attention = Attention(width, heads, tokens)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class SeismogramEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        tokens = SAMPLES // PATCH
        self.patch = nn.Linear(3 * PATCH, WIDTH)
        self.blocks = nn.Sequential(*(Block(WIDTH, HEADS, tokens) for _ in range(DEPTH)))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, traces):
        b, components, n = traces.shape
        patches = traces.view(b, components, n // PATCH, PATCH).transpose(1, 2).flatten(2)
        x = self.blocks(self.patch(patches))
        return F.normalize(self.norm(x).mean(dim=1).float(), dim=-1)


def traces_for(event):
    g = torch.Generator(device=device).manual_seed(event)
    noise = torch.randn(STATIONS, 3, SAMPLES, device=device, generator=g)
    ramp = torch.linspace(0, 40 * math.pi, SAMPLES, device=device)
    return (0.3 * noise + torch.sin(ramp * (1 + event % 5))).bfloat16()


@torch.inference_mode()
def build_catalogue():
    torch.manual_seed(1906)
    encoder = SeismogramEncoder().to(device, torch.bfloat16).eval()
    encode = torch.compile(encoder)
    events = [traces_for(e) for e in range(16)]
    catalogue = torch.empty(BATCHES * STATIONS, WIDTH, device=device)

    encode(events[0])
    torch.cuda.synchronize()
    began = time.perf_counter()
    for batch in range(BATCHES):
        rows = slice(batch * STATIONS, (batch + 1) * STATIONS)
        catalogue[rows] = encode(events[batch % len(events)])
        if batch % 200 == 199:
            torch.cuda.synchronize()
            rate = (batch + 1) * STATIONS / (time.perf_counter() - began)
            print(f"{(batch + 1) * STATIONS:6d} traces, {rate:.0f} traces/s")

    nearest = (catalogue[:STATIONS] @ catalogue.T).topk(3, dim=-1)
    print("closest:", nearest.values[:, -1].tolist())


if __name__ == "__main__":
    build_catalogue()
