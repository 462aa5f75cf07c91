"""Pre-train a small GPT on a synthetic story grammar."""
import argparse
import math
import time

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.RMSNorm(dim), nn.RMSNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim, bias=False)
        self.up = nn.Linear(dim, 4 * dim, bias=False)
        self.down = nn.Linear(4 * dim, dim, bias=False)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, d))
        return x + self.down(nn.functional.relu(self.up(self.n2(x))).square())


class GPT(nn.Module):
    def __init__(self, vocab, dim, heads, depth, length):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, dim), nn.Parameter(torch.zeros(length, dim))
        self.blocks = nn.Sequential(*[Block(dim, heads) for _ in range(depth)])
        self.norm, self.head = nn.RMSNorm(dim), nn.Linear(dim, vocab, bias=False)

    def forward(self, ids, target):
        x = self.blocks(self.tok(ids) + self.pos)
        logits = 30.0 * torch.tanh(self.head(self.norm(x)).float() / 30.0)
        return nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())


def stories(pages, batch, length, vocab, device):
    g = torch.Generator().manual_seed(1)
    words = torch.randint(0, vocab, (2048, 6), generator=g)
    pick = torch.randint(0, 2048, (pages * batch * (length // 6 + 2),), generator=g)
    text = words[pick].flatten()[: pages * batch * (length + 1)]
    return text.view(pages, batch, length + 1).to(device)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=1500)
    ap.add_argument("--batch", type=int, default=24)
    ap.add_argument("--length", type=int, default=1024)
    args = ap.parse_args()
    device = "cuda"

    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    model = GPT(8192, 640, 10, 6, args.length).to(device, torch.bfloat16)
    step = torch.compile(model)
    opt = torch.optim.AdamW(model.parameters(), lr=torch.tensor(3e-4, device=device), fused=True)
    pages = stories(48, args.batch, args.length, 8192, device)
    began, meter = time.perf_counter(), torch.zeros((), device=device)
    for i in range(args.steps):
        opt.param_groups[0]["lr"].fill_(3e-4 * 0.5 * (1 + math.cos(math.pi * i / args.steps)))
        page = pages[i % len(pages)]
        loss = step(page[:, :-1], page[:, 1:])
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        meter += loss.detach()
        if i % 100 == 99:
            print(f"{i + 1}: {meter.item() / 100:.4f} {time.perf_counter() - began:.1f} s")
            meter.zero_()


if __name__ == "__main__":
    main()
