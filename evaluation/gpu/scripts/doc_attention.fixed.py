"""Packed documents through a local-attention encoder (FlexAttention), features for retrieval."""
import os
import time
import torch
import torch.nn as nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

torch.manual_seed(1)
dev = "cuda"
SEQ, D, HEADS, DEPTH, WINDOW = 8192, 256, 4, 4, 256


class LocalBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(D)
        self.qkv = nn.Linear(D, 3 * D, bias=False)
        self.proj = nn.Linear(D, D, bias=False)
        self.mlp = nn.Sequential(nn.LayerNorm(D), nn.Linear(D, 2 * D), nn.GELU(), nn.Linear(2 * D, D))

    def forward(self, x, mask):
        b, s, _ = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, s, 3, HEADS, D // HEADS).permute(2, 0, 3, 1, 4)
        y = flex_attention(q, k, v, block_mask=mask)
        x = x + self.proj(y.transpose(1, 2).reshape(b, s, D))
        return x + self.mlp(x)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(8000, D)
        self.blocks = nn.ModuleList(LocalBlock() for _ in range(DEPTH))

    def forward(self, ids, mask):
        x = self.emb(ids)
        for b in self.blocks:
            x = b(x, mask)
        return x.mean(1)


def local(b, h, q, kv):
    return ((q - kv).abs() <= WINDOW) & (q // 1024 == kv // 1024)


@torch.no_grad()
def main():
    enc = Encoder().to(dev, torch.bfloat16).eval()
    enc = torch.compile(enc)
    mask = create_block_mask(local, None, None, SEQ, SEQ, device=dev)
    t0 = time.time()
    acc = torch.zeros((), device=dev)
    for i in range(int(os.environ.get("STEPS", "6000"))):
        ids = torch.randint(0, 8000, (1, SEQ), device=dev)
        feats = enc(ids, mask)
        acc += feats.float().norm()
        if i % 250 == 0:
            print(f"batch {i} mean feature norm {acc.item() / (i + 1):.4f} {time.time() - t0:.1f}s", flush=True)


if __name__ == "__main__":
    main()
