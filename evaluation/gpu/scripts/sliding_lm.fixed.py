"""Byte-level language model with windowed attention over very long contexts."""
import argparse
import time

import torch
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

WINDOW = 512


def local_causal(b, h, q, k):
    return (q >= k) & (q - k < WINDOW)


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.RMSNorm(dim), nn.RMSNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim, bias=False)
        self.up = nn.Linear(dim, 4 * dim, bias=False)
        self.down = nn.Linear(4 * dim, dim, bias=False)

    def forward(self, x, visible):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = flex_attention(q, k, v, block_mask=visible)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, d))
        return x + self.down(nn.functional.gelu(self.up(self.n2(x))))


class ByteLM(nn.Module):
    def __init__(self, dim, heads, depth):
        super().__init__()
        self.embed = nn.Embedding(256, dim)
        self.blocks = nn.ModuleList([Block(dim, heads) for _ in range(depth)])
        self.norm = nn.RMSNorm(dim)
        self.head = nn.Linear(dim, 256, bias=False)

    def forward(self, ids, target, visible):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x, visible)
        logits = self.head(self.norm(x)).float()
        return nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())


def stream(length, device):
    """A looping synthetic byte stream with long-range repeats."""
    g = torch.Generator().manual_seed(0)
    motif = torch.randint(0, 256, (4099,), generator=g)
    text = motif.repeat(1024)
    noise = torch.rand(text.shape, generator=g) < 0.1
    text[noise] = torch.randint(0, 256, (int(noise.sum()),), generator=g)
    return text.to(device)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=4000)
    ap.add_argument("--context", type=int, default=16384)
    ap.add_argument("--dim", type=int, default=256)
    args = ap.parse_args()
    device = "cuda"

    torch.set_float32_matmul_precision("high")
    torch.manual_seed(0)
    model = ByteLM(args.dim, 4, 2).to(device, torch.bfloat16)
    loss_fn = torch.compile(model)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    visible = create_block_mask(local_causal, None, None, args.context, args.context, device=device)
    text = stream(args.context, device)
    began = time.perf_counter()
    for i in range(args.steps):
        at = (i * 7919) % (text.numel() - args.context - 1)
        ids = text[at : at + args.context + 1]
        loss = loss_fn(ids[None, :-1], ids[None, 1:], visible)
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        if i % 200 == 0:
            print(f"{i:5d} loss {loss.item():.4f} {time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
