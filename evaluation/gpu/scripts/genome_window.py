"""Embeds long DNA contigs with a local-attention encoder (each base looks at its neighbourhood only)."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.nn.attention.flex_attention as flex
from torch.nn.attention.flex_attention import flex_attention

SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
DTYPE = torch.bfloat16 if device.type == "cuda" else torch.float32

if os.environ.get("TORCH_COMPILE_DISABLE") == "1":
    flex._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = True  # plain eager attention

BATCH, LENGTH, REACH = (1, 512, 32) if SMALL else (2, 8192, 256)
WIDTH, HEADS, LAYERS = (64, 2, 2) if SMALL else (512, 8, 4)


def neighbourhood(score, b, h, q, k):
    near = (q - k).abs() <= REACH
    return torch.where(near, score - (q - k).abs() * 0.01, -float("inf"))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH)
        self.ffn = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        b, n, _ = x.shape
        qkv = self.qkv(self.norm1(x)).view(b, n, 3, HEADS, WIDTH // HEADS)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        a = flex_attention(q, k, v, score_mod=neighbourhood)
        x = x + self.proj(a.transpose(1, 2).reshape(b, n, WIDTH))
        return x + self.ffn(self.norm2(x))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Embedding(5, WIDTH)
        self.smear = nn.Linear(WIDTH, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, contig):
        x = self.base(contig)
        x = x + F.gelu(self.smear(x))
        for layer in self.layers:
            x = layer(x)
        return self.norm(x).mean(dim=1).float()


def sync():
    if device.type == "cuda":
        torch.cuda.synchronize()


@torch.no_grad()
def main():
    torch.manual_seed(0)
    encoder = torch.compile(Encoder().to(device, DTYPE).eval())
    contigs = torch.randint(0, 5, (8, BATCH, LENGTH), device=device)
    bank = torch.zeros(8, BATCH, WIDTH, device=device)
    half = STEPS // 2
    for i in range(STEPS):
        if i == half:
            sync()
            t0 = time.perf_counter()
        bank[i % 8] = encoder(contigs[i % 8])
    sync()
    elapsed = (time.perf_counter() - t0) / (STEPS - half)
    print(f"bank std {bank.std().item():.4f}")
    print(f"step_ms={elapsed * 1e3:.3f}")


if __name__ == "__main__":
    main()
