"""Greedy decoding of short verses with a key/value store kept by the caller."""
import argparse
from dataclasses import dataclass

import torch
from torch import nn
import torch.nn.functional as F

DEVICE = "cuda"
WIDTH, HEADS, DEPTH, LIMIT = 256, 4, 6, 128


@dataclass
class Store:
    keys: torch.Tensor
    values: torch.Tensor

    @classmethod
    def empty(cls, batch):
        shape = (DEPTH, batch, HEADS, LIMIT, WIDTH // HEADS)
        return cls(torch.zeros(shape, device=DEVICE), torch.zeros(shape, device=DEVICE))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x, keys, values, at, mask):
        b = x.shape[0]
        q, k, v = self.qkv(self.norm(x)).view(b, 1, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        keys.index_copy_(2, at, k)
        values.index_copy_(2, at, v)
        y = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
        x = x + self.proj(y.transpose(1, 2).reshape(b, 1, WIDTH))
        return x + self.mlp(x)


class Poet(nn.Module):
    def __init__(self, words=4000):
        super().__init__()
        self.embed = nn.Embedding(words, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.out = nn.Linear(WIDTH, words)
        self.register_buffer("slots", torch.arange(LIMIT))

    def forward(self, word, keys, values, at):
        x = self.embed(word)
        mask = (self.slots <= at)[None, None, None, :]
        for i, block in enumerate(self.blocks):
            x = block(x, keys[i], values[i], at, mask)
        return self.out(x[:, -1]).argmax(-1, keepdim=True)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=12000)
    args = ap.parse_args()
    torch.manual_seed(5)
    torch.set_float32_matmul_precision("high")
    poet = torch.compile(Poet().to(DEVICE).eval(), mode="reduce-overhead")
    store = Store.empty(batch=4)
    word = torch.zeros(4, 1, dtype=torch.long, device=DEVICE)
    positions = torch.arange(LIMIT, device=DEVICE)
    with torch.no_grad():
        for step in range(args.steps):
            if step % LIMIT == 0:
                store = Store.empty(batch=4)
            at = positions[step % LIMIT:step % LIMIT + 1]
            word = poet(word, store.keys, store.values, at).clone()
            if step % 2000 == 0:
                print(step, word.flatten().tolist())


if __name__ == "__main__":
    main()
