"""Passage re-ranker: one request at a time, a handful of candidates per request."""
import os
import time
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
dtype = torch.bfloat16 if device == "cuda" else torch.float32


@dataclass
class Config:
    vocab: int = 30000
    dim: int = 384
    heads: int = 6
    layers: int = 12
    length: int = 96
    candidates: int = 12
    seconds: float = float(os.environ.get("SECONDS", "25"))


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.h = c.heads
        self.n1, self.n2 = nn.LayerNorm(c.dim), nn.LayerNorm(c.dim)
        self.qkv = nn.Linear(c.dim, 3 * c.dim)
        self.o = nn.Linear(c.dim, c.dim)
        self.fc1 = nn.Linear(c.dim, 4 * c.dim)
        self.fc2 = nn.Linear(4 * c.dim, c.dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v)
        x = x + self.o(a.transpose(1, 2).reshape(b, t, d))
        return x + self.fc2(F.gelu(self.fc1(self.n2(x))))


class CrossEncoder(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.tok = nn.Embedding(c.vocab, c.dim)
        self.pos = nn.Parameter(torch.randn(c.length, c.dim) * 0.02)
        self.layers = nn.ModuleList(Layer(c) for _ in range(c.layers))
        self.norm = nn.LayerNorm(c.dim)
        self.score = nn.Linear(c.dim, 1)

    def forward(self, ids):
        x = self.tok(ids) + self.pos
        for layer in self.layers:
            x = layer(x)
        return self.score(self.norm(x[:, 0])).squeeze(-1)


class Ranker:
    def __init__(self, cfg):
        torch.manual_seed(1)
        self.cfg = cfg
        self.model = CrossEncoder(cfg).to(device, dtype).eval()
        self.encode = torch.compile(self.model, mode="reduce-overhead")

    def rank(self, ids):
        scores = self.encode(ids)
        order = scores.argsort(descending=True)
        return scores, order


def requests(cfg, n=32):
    pool = [torch.randint(0, cfg.vocab, (cfg.candidates, cfg.length), device=device) for _ in range(n)]
    while True:
        yield from pool


def main():
    cfg = Config()
    ranker = Ranker(cfg)
    source = requests(cfg)
    for _ in range(6):
        scores, order = ranker.rank(next(source))
    print("ready, top score", round(scores[order[0]].item(), 3))

    lat = []
    t_end = time.perf_counter() + cfg.seconds
    while time.perf_counter() < t_end:
        ids = next(source)
        t0 = time.perf_counter()
        scores, order = ranker.rank(ids)
        winner = order[0].item()
        lat.append(time.perf_counter() - t0)
    lat.sort()
    print(f"{len(lat)} requests, last winner {winner}")
    print(f"p50 {1e3 * lat[len(lat) // 2]:.2f} ms  p99 {1e3 * lat[int(len(lat) * .99)]:.2f} ms")


if __name__ == "__main__":
    main()
