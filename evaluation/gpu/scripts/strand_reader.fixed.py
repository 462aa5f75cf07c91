"""Embeds long DNA windows with a local-attention encoder and ranks them for promoter activity."""
import os
import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

device = "cuda"

LENGTH = 16_384
WINDOW = 512
DIM = 768
HEADS = 12
LAYERS = 4
STRANDS = int(os.environ.get("STEPS", "1800"))
REPORT = 300

BASES = "ACGTN"


def decay_rates(heads):
    return 2.0 ** (-8.0 * torch.arange(1, heads + 1, device=device) / heads)


class LocalAttention(nn.Module):
    """Each base looks back over WINDOW bases, with a head-wise linear distance penalty."""

    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)
        self.register_buffer("decay", decay_rates(heads))
        self.band = create_block_mask(
            lambda b, h, q_idx, kv_idx: (q_idx >= kv_idx) & (q_idx - kv_idx < WINDOW),
            None, None, LENGTH, LENGTH, device=device)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        decay = self.decay

        def banded(score, b, h, q_idx, kv_idx):
            back = q_idx - kv_idx
            near = (back >= 0) & (back < WINDOW)
            return torch.where(near, score - decay[h] * back, -float("inf"))

        y = flex_attention(q, k, v, score_mod=banded, block_mask=self.band)
        return self.out(y.transpose(1, 2).reshape(b, t, d))


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.n1 = nn.RMSNorm(dim)
        self.attend = LocalAttention(dim, heads)
        self.n2 = nn.RMSNorm(dim)
        self.up = nn.Linear(dim, 2 * dim, bias=False)
        self.down = nn.Linear(2 * dim, dim, bias=False)

    def forward(self, x):
        x = x + self.attend(self.n1(x))
        return x + self.down(F.gelu(self.up(self.n2(x)), approximate="tanh"))


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(len(BASES), DIM)
        self.layers = nn.ModuleList(Layer(DIM, HEADS) for _ in range(LAYERS))
        self.norm = nn.RMSNorm(DIM)
        self.rank = nn.Linear(DIM, 1, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.rank(self.norm(x).mean(dim=1)).float().squeeze(-1)


def synthetic_genome(n, generator):
    """Random bases with CpG-like repeats sprinkled in."""
    g = torch.randint(0, 4, (n,), generator=generator)
    for start in torch.randint(0, n - 400, (n // 5000,), generator=generator).tolist():
        g[start:start + 400:2] = 1
        g[start + 1:start + 400:2] = 2
    return g.to(device)


def main():
    torch.manual_seed(23)
    genome = synthetic_genome(2_000_000, torch.Generator().manual_seed(3))
    reader = Reader().to(device=device, dtype=torch.bfloat16).eval()
    score = torch.compile(reader)

    def strand(n):
        start = (n * 7919) % (genome.numel() - LENGTH)
        return genome[start:start + LENGTH].unsqueeze(0)

    for n in range(3):
        score(strand(n))
    torch.cuda.synchronize()
    ranks = torch.empty(STRANDS, device=device)
    begin = time.perf_counter()
    for n in range(STRANDS):
        ranks[n] = score(strand(n))[0]
        if (n + 1) % REPORT == 0:
            torch.cuda.synchronize()
            print(f"{n + 1:5d} strands  {(time.perf_counter() - begin) / (n + 1) * 1e3:.2f} ms each")
    best = ranks.topk(5)
    print("best strands", best.indices.tolist(), [round(v, 4) for v in best.values.tolist()])
    if not math.isfinite(ranks.sum().item()):
        raise RuntimeError("non-finite ranks")


if __name__ == "__main__":
    with torch.no_grad():
        main()
