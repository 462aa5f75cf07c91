"""Embedding long packed token streams (several documents per row) with windowed causal attention."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.attention import flex_attention as flex_lib
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))

if os.environ.get("TORCH_COMPILE_DISABLE") == "1":
    flex_lib._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = True

SEQ = 512 if SMALL else 8192
HEADS = 2 if SMALL else 8
DIM = HEADS * 64
WINDOW = 128 if SMALL else 512
DOCS = 6
DTYPE = torch.bfloat16 if device.type == "cuda" else torch.float32


def build_mask(doc):
    def visible(b, h, q, kv):
        return (q >= kv) & (q - kv < WINDOW) & (doc[q] == doc[kv])

    return create_block_mask(visible, None, None, SEQ, SEQ, device=device)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(32000, DIM)
        self.qkv = nn.Linear(DIM, 3 * DIM, bias=False)
        self.proj = nn.Linear(DIM, DIM, bias=False)
        self.up = nn.Linear(DIM, 2 * DIM)
        self.down = nn.Linear(2 * DIM, DIM)

    def forward(self, tokens, mask):
        x = self.embed(tokens)
        h = F.layer_norm(x, (DIM,))
        q, k, v = self.qkv(h).view(1, SEQ, 3, HEADS, 64).permute(2, 0, 3, 1, 4)
        a = flex_attention(q, k, v, block_mask=mask)
        x = x + self.proj(a.transpose(1, 2).reshape(1, SEQ, DIM))
        x = x + self.down(F.gelu(self.up(F.layer_norm(x, (DIM,)))))
        return F.normalize(x.float(), dim=-1)


def sync():
    if device.type == "cuda":
        torch.cuda.synchronize()


@torch.no_grad()
def main():
    torch.manual_seed(0)
    model = Encoder().to(device, DTYPE).eval()
    encode = torch.compile(model)
    cuts = torch.arange(1, DOCS, device=device) * (SEQ // DOCS) + 7
    doc = torch.bucketize(torch.arange(SEQ, device=device), cuts)
    pool = torch.zeros(DOCS, DIM, device=device)
    stream = torch.randint(0, 32000, (16, 1, SEQ), device=device)
    half = STEPS // 2
    t0 = None
    for step in range(STEPS):
        if step == half:
            sync()
            t0 = time.perf_counter()
        out = encode(stream[step % 16], build_mask(doc))
        pool.index_add_(0, doc, out[0], alpha=1.0 / STEPS)
    sync()
    ms = (time.perf_counter() - t0) * 1e3 / (STEPS - half)
    print(f"pool_norm={pool.norm().item():.4f}")
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()
