"""Tagging of seabed types along side-scan sonar tracks: local attention over pings."""
import os
import time

import torch
import torch.nn as nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

small = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = int(os.environ.get("STEPS", 5000))
BATCH, PINGS, WIDTH, HEADS, LAYERS = (1, 256, 64, 2, 2) if small else (4, 4096, 512, 8, 4)
REACH = 64 if small else 256


def near(b, h, q, k):
    return (q - k).abs() <= REACH


class TrackLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.ff = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x, mask):
        b, n, w = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, HEADS, w // HEADS).permute(2, 0, 3, 1, 4)
        a = flex_attention(q, k, v, block_mask=mask)
        x = x + self.out(a.transpose(1, 2).reshape(b, n, w))
        return x + self.ff(self.norm2(x))


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.ping = nn.Linear(128, WIDTH)
        self.layers = nn.ModuleList(TrackLayer() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, 7)

    def forward(self, track, mask):
        x = self.ping(track)
        for layer in self.layers:
            x = layer(x, mask)
        return self.head(x).argmax(-1)


@torch.no_grad()
def main():
    torch.manual_seed(0)
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    tagger = torch.compile(Tagger().to(device, dtype).eval())
    mask = create_block_mask(near, None, None, PINGS, PINGS, device=device)
    tracks = torch.randn(6, BATCH, PINGS, 128, device=device, dtype=dtype)
    tally = torch.zeros(7, dtype=torch.long, device=device)
    began = time.perf_counter()
    for step in range(STEPS):
        tags = tagger(tracks[step % 6], mask)
        tally += torch.nn.functional.one_hot(tags.flatten(), 7).sum(0)
        if step % 500 == 0:
            print(f"track {step:5d} {tally.tolist()} ({time.perf_counter() - began:.1f} s)")


if __name__ == "__main__":
    main()
