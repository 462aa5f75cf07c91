"""Attention layer of a small serving engine with a block-table key/value store."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
dtype = torch.bfloat16 if device == "cuda" else torch.float32

BLOCKS, BLOCK = 16384, 16
HEADS, KV_HEADS, HEAD_DIM = 16, 4, 128
DIM = HEADS * HEAD_DIM
SEQS = 32
CONTEXT = 512
RUN_SECONDS = float(os.environ.get("RUN_SECONDS", "25"))


class PagedAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(DIM)
        self.q = nn.Linear(DIM, DIM, bias=False)
        self.kv = nn.Linear(DIM, 2 * KV_HEADS * HEAD_DIM, bias=False)
        self.o = nn.Linear(DIM, DIM, bias=False)

    def forward(self, x, k_store, v_store, slot, table):
        h = self.norm(x)
        q = self.q(h).view(SEQS, HEADS, 1, HEAD_DIM)
        k, v = self.kv(h).view(SEQS, 2, KV_HEADS, HEAD_DIM).unbind(1)

        k_rows = k_store.view(-1, KV_HEADS, HEAD_DIM)
        v_rows = v_store.view(-1, KV_HEADS, HEAD_DIM)
        k_rows[slot] = k
        v_rows[slot] = v

        rows = (table[:, :, None] * BLOCK + torch.arange(BLOCK, device=x.device)).view(SEQS, -1)
        keys = k_rows[rows].transpose(1, 2)
        vals = v_rows[rows].transpose(1, 2)
        g = HEADS // KV_HEADS
        q = q.view(SEQS, KV_HEADS, g, HEAD_DIM)
        out = F.scaled_dot_product_attention(q, keys, vals)
        return x + self.o(out.reshape(SEQS, DIM))


class Engine:
    def __init__(self):
        torch.manual_seed(0)
        self.layer = torch.compile(PagedAttention().to(device, dtype).eval())
        shape = (BLOCKS, BLOCK, KV_HEADS, HEAD_DIM)
        self.k_store = torch.randn(shape, device=device, dtype=dtype) * 0.1
        self.v_store = torch.randn(shape, device=device, dtype=dtype) * 0.1
        per_seq = CONTEXT // BLOCK
        owners = torch.randperm(BLOCKS, device=device)[: SEQS * per_seq]
        self.table = owners.view(SEQS, per_seq)
        self.pos = torch.zeros((), dtype=torch.long, device=device)

    def advance(self):
        p = self.pos % CONTEXT
        slot = self.table[:, p // BLOCK] * BLOCK + p % BLOCK
        self.pos += 1
        return slot

    @torch.no_grad()
    def token(self, x):
        slot = self.advance()
        y = self.layer(x, self.k_store, self.v_store, slot, self.table)
        return F.normalize(y.float(), dim=-1).to(dtype) * DIM**0.5


def main():
    engine = Engine()
    x = torch.randn(SEQS, DIM, device=device, dtype=dtype)
    for _ in range(5):
        x = engine.token(x)
    print("warm", round(x.float().std().item(), 3))

    tokens = 0
    start = time.perf_counter()
    while time.perf_counter() - start < RUN_SECONDS:
        for _ in range(250):
            x = engine.token(x)
        tokens += 250
        check = x.float().std().item()
    dt = time.perf_counter() - start
    print(f"{tokens} positions, {1e3 * dt / tokens:.3f} ms each, {tokens * SEQS / dt:.0f} tok/s, std {check:.3f}")


if __name__ == "__main__":
    main()
