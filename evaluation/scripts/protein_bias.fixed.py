"""Residue-pair scorer: attention with a distance-kernel bias, scored over a library of sequences."""
import functools
import os
import time

import torch
import torch.nn as nn

STEPS = int(os.environ.get("STEPS", 3000))
torch.set_num_threads(1)


@functools.lru_cache(maxsize=8)
def kernel_bias(length, heads):
    pos = torch.arange(length, dtype=torch.float32)
    dist = (pos[:, None] - pos[None, :]).abs()
    scale = torch.logspace(0, 2.5, heads)[:, None, None]
    near = torch.exp(-dist / scale)
    wave = torch.cos(dist * 0.61 / scale.sqrt())
    return near * wave - torch.log1p(dist) / scale


class PairAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.register_buffer("bias", kernel_bias(384, heads), persistent=False)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        logits = q @ k.transpose(-1, -2) * (d // self.heads) ** -0.5
        att = (logits + self.bias).softmax(-1)
        return self.out((att @ v).transpose(1, 2).reshape(b, n, d))


class Scorer(nn.Module):
    def __init__(self, vocab=25, dim=64, heads=8):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.att = PairAttention(dim, heads)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, 1)

    def forward(self, seq):
        x = self.embed(seq)
        x = self.norm(x + self.att(x))
        return self.head(x).mean((1, 2))


def main():
    torch.manual_seed(0)
    scorer = torch.compile(Scorer().eval())
    best, every = -1e9, max(1, STEPS // 10)
    t0, s0 = None, 0
    with torch.no_grad():
        for step in range(STEPS):
            if step == 2:
                t0, s0 = time.perf_counter(), step
            seq = torch.randint(0, 25, (1, 384))
            best = max(best, scorer(seq).max().item())
            if step > 2 and step % every == 0:
                ms = (time.perf_counter() - t0) / (step - s0) * 1e3
                print(f"{step} sequences, best {best:.4f}  {ms:.3f} ms/step")
                t0, s0 = time.perf_counter(), step


if __name__ == "__main__":
    main()
