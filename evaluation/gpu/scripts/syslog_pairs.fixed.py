"""Embed long system-log windows and compare neighbouring windows."""
import os
import random
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

DEV = "cuda"
WINDOW = 2048
HEADS = 16
DIM = 1024
ROUNDS = int(os.environ.get("STEPS", "1000"))


def make_repeatable(seed):
    random.seed(seed)
    torch.manual_seed(seed)


class LogBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.pre = nn.RMSNorm(DIM)
        self.post = nn.RMSNorm(DIM)
        self.qkv = nn.Linear(DIM, 3 * DIM, bias=False)
        self.merge = nn.Linear(DIM, DIM, bias=False)
        self.gate = nn.Linear(DIM, 2 * DIM, bias=False)
        self.value = nn.Linear(DIM, 2 * DIM, bias=False)
        self.out = nn.Linear(2 * DIM, DIM, bias=False)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (z.view(b, t, HEADS, -1).transpose(1, 2) for z in self.qkv(self.pre(x)).chunk(3, dim=-1))
        att = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=(DIM // HEADS) ** -0.5)
        x = x + self.merge(att.transpose(1, 2).reshape(b, t, DIM))
        h = self.post(x)
        return x + self.out(F.silu(self.gate(h)) * self.value(h))


class LogEncoder(nn.Module):
    def __init__(self, depth=2):
        super().__init__()
        self.emb = nn.Embedding(4096, DIM)
        self.blocks = nn.ModuleList(LogBlock() for _ in range(depth))
        self.norm = nn.RMSNorm(DIM)

    def forward(self, ids):
        x = self.emb(ids)
        for b in self.blocks:
            x = b(x)
        return F.normalize(self.norm(x).mean(dim=1).float(), dim=-1)


def main():
    make_repeatable(7)
    enc = LogEncoder().to(DEV, torch.bfloat16).eval()
    enc = torch.compile(enc)
    windows = torch.randint(0, 4096, (40, WINDOW), device=DEV)
    sims = []
    t0 = time.perf_counter()
    with torch.inference_mode():
        for i in range(1, ROUNDS + 1):
            start = random.randrange(0, 36)
            e = enc(windows[start:start + 4])
            sims.append((e[:-1] * e[1:]).sum(-1).mean())
            if i % 100 == 0:
                mean = torch.stack(sims).mean().item()
                sims.clear()
                print(f"{i:5d} similarity {mean:.4f}  {(time.perf_counter() - t0) * 10:.2f} ms/batch")
                t0 = time.perf_counter()


if __name__ == "__main__":
    main()
