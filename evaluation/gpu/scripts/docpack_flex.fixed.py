import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.nn.attention.flex_attention as flex_module
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

DEV = torch.device("cuda" if torch.cuda.is_available() else "cpu")
STEPS = int(os.environ.get("STEPS", "300"))
SMALL = os.environ.get("SMALL") == "1"

TOKENS = 256 if SMALL else 6144        # one packed row of case files
DIM = 64 if SMALL else 512
HEADS = 2 if SMALL else 8
REACH = 64 if SMALL else 1024
VOCAB = 1000
if os.environ.get("TORCH_COMPILE_DISABLE") == "1":
    flex_module._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = True

attend = torch.compile(flex_attention)
build_mask = torch.compile(create_block_mask)


def case_bounds(case_of):
    def same_case(b, h, q, k):
        near = (q - k).abs() <= REACH
        return (case_of[q] == case_of[k]) & near
    return build_mask(same_case, None, None, TOKENS, TOKENS, device=DEV)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(DIM)
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.out = nn.Linear(DIM, DIM)
        self.ff = nn.Sequential(nn.LayerNorm(DIM), nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, x, mask):
        q, k, v = self.qkv(self.norm(x)).view(1, TOKENS, 3, HEADS, DIM // HEADS).permute(2, 0, 3, 1, 4)
        y = attend(q, k, v, block_mask=mask)
        x = x + self.out(y.transpose(1, 2).reshape(1, TOKENS, DIM))
        return x + self.ff(x)


def pack(gen):
    """Random case lengths laid end to end, as a case id for each token."""
    cuts = torch.randint(1, TOKENS, (12,), generator=gen).sort().values
    flags = torch.zeros(TOKENS, dtype=torch.int32)
    flags[cuts] = 1
    return flags.cumsum(0).to(torch.int32)


def sync():
    if DEV.type == "cuda":
        torch.cuda.synchronize()


def main():
    torch.manual_seed(5)
    gen = torch.Generator().manual_seed(5)
    dtype = torch.bfloat16 if DEV.type == "cuda" else torch.float32
    embed = nn.Embedding(VOCAB, DIM).to(DEV, dtype)
    layers = nn.ModuleList(Reader() for _ in range(2)).to(DEV, dtype)
    rows = [pack(gen).to(DEV) for _ in range(16)]
    ids = torch.randint(0, VOCAB, (16, 1, TOKENS), device=DEV)

    score = torch.zeros((), device=DEV)
    t0 = time.perf_counter()
    with torch.no_grad():
        for step in range(STEPS):
            if step == STEPS // 2:
                sync()
                t0 = time.perf_counter()
            mask = case_bounds(rows[step % 16])
            x = embed(ids[step % 16])
            for layer in layers:
                x = layer(x, mask)
            score += F.normalize(x.float().mean(1), dim=-1).amax()
    sync()
    ms = (time.perf_counter() - t0) * 1e3 / (STEPS - STEPS // 2)
    print(f"mean peak score {score.item() / max(STEPS, 1):.5f}")
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()
