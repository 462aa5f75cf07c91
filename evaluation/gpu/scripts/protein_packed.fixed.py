"""Embed packed protein sequences: several chains share one row, each step brings another packing."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.attention import flex_attention as fa
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

SMALL = os.environ.get("SMALL") == "1"
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
TOKENS = 512 if SMALL else 8192
if os.environ.get("TORCH_COMPILE_DISABLE") == "1":
    fa._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = True
WIDTH, HEADS, LAYERS, VOCAB = 512, 8, 3, 33
DTYPE = torch.bfloat16 if DEVICE.type == "cuda" else torch.float32


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, mask):
        q, k, v = self.qkv(self.n1(x)).view(1, x.shape[1], 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        a = flex_attention(q.contiguous(), k.contiguous(), v.contiguous(), block_mask=mask)
        x = x + self.out(a.transpose(1, 2).reshape(1, x.shape[1], WIDTH))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class ChainEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, tokens, mask):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x, mask)
        return self.norm(x)


def chain_mask(chain):
    def same_chain_nearby(b, h, q_idx, kv_idx):
        return (chain[q_idx] == chain[kv_idx]) & ((q_idx - kv_idx).abs() < 1536)

    return same_chain_nearby


build_mask = torch.compile(create_block_mask)


def make_packings(count, gen):
    rows = []
    for _ in range(count):
        cuts = torch.randint(1, TOKENS, (11,), generator=gen).sort().values
        chain = torch.zeros(TOKENS, dtype=torch.int32)
        chain[cuts] = 1
        rows.append((torch.randint(0, VOCAB, (1, TOKENS), generator=gen).to(DEVICE), chain.cumsum(0).to(DEVICE)))
    return rows


def main():
    steps = int(os.environ.get("STEPS", "300"))
    torch.manual_seed(11)
    model = ChainEncoder().to(DEVICE, DTYPE).eval()
    encode = torch.compile(model)
    packings = make_packings(48, torch.Generator().manual_seed(5))
    pooled = torch.zeros(WIDTH, device=DEVICE)
    with torch.no_grad():
        for step in range(steps):
            if step == steps // 2:
                if DEVICE.type == "cuda":
                    torch.cuda.synchronize()
                t0 = time.perf_counter()
            tokens, chain = packings[step % len(packings)]
            mask = build_mask(chain_mask(chain), None, None, TOKENS, TOKENS, device=DEVICE.type)
            pooled += encode(tokens, mask)[0].float().mean(0)
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
    ms = (time.perf_counter() - t0) * 1e3 / (steps - steps // 2)
    print("pooled norm", (pooled / steps).norm().item())
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()
