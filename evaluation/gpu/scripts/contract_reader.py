"""Embed packed batches of contract clauses with a small local/global encoder.

Clauses of very different length are packed back to back into one long row; attention may not cross
clause boundaries. Even layers look at a sliding window, odd layers at the whole clause.
"""
import os
import time

import torch
import torch.nn as nn
import torch.nn.attention.flex_attention as fa
import torch.nn.functional as F
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
dtype = torch.bfloat16 if device.type == "cuda" else torch.float32

SEQ = 512 if SMALL else 8192
DIM, HEADS = (64, 2) if SMALL else (512, 8)
WINDOW = 64 if SMALL else 256
VOCAB = 8192

if os.environ.get("TORCH_COMPILE_DISABLE") == "1":  # lets a debugger step into the mask functions
    fa._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = True


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1 = nn.LayerNorm(DIM)
        self.n2 = nn.LayerNorm(DIM)
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.out = nn.Linear(DIM, DIM)
        self.up = nn.Linear(DIM, 4 * DIM)
        self.down = nn.Linear(4 * DIM, DIM)

    def forward(self, x, mask):
        b, s, _ = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, s, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        a = flex_attention(q, k, v, block_mask=mask)
        x = x + self.out(a.transpose(1, 2).reshape(b, s, DIM))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class Encoder(nn.Module):
    def __init__(self, layers=2):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, DIM)
        self.blocks = nn.ModuleList(Block() for _ in range(layers))
        self.norm = nn.LayerNorm(DIM)

    def forward(self, tok, local_mask, clause_mask):
        x = self.emb(tok)
        for i, blk in enumerate(self.blocks):
            x = blk(x, clause_mask if i % 2 else local_mask)
        return self.norm(x)


clause_of = torch.zeros(SEQ, dtype=torch.int32, device=device)


def same_clause(b, h, q, kv):
    return clause_of[q] == clause_of[kv]


def same_clause_window(b, h, q, kv):
    return (clause_of[q] == clause_of[kv]) & ((q - kv).abs() <= WINDOW)


build_mask = create_block_mask


def pack(gen):
    """Random clause lengths -> clause index of each position."""
    starts = torch.rand(SEQ, generator=gen) < 1.0 / 400
    return starts.cumsum(0).to(torch.int32)


def main():
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(5)
    layouts = torch.stack([pack(gen) for _ in range(32)]).to(device)
    tokens = torch.randint(0, VOCAB, (32, 1, SEQ), device=device)
    model = torch.compile(Encoder().to(device, dtype).eval())
    total = torch.zeros((), device=device)
    mark = STEPS // 2
    with torch.no_grad():
        for step in range(STEPS):
            if step == mark:
                if device.type == "cuda":
                    torch.cuda.synchronize()
                t0 = time.perf_counter()
            clause_of.copy_(layouts[step % 32])
            local = build_mask(same_clause_window, None, None, SEQ, SEQ, device=device.type)
            whole = build_mask(same_clause, None, None, SEQ, SEQ, device=device.type)
            h = model(tokens[step % 32], local, whole)
            total += h[0, -1].float().norm()
    if device.type == "cuda":
        torch.cuda.synchronize()
    dt = (time.perf_counter() - t0) / (STEPS - mark)
    print(f"mean norm {total.item() / STEPS:.4f}")
    print(f"step_ms={dt * 1e3:.3f}")


if __name__ == "__main__":
    main()
