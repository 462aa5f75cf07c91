"""Greedy/top-k sampling from a small decoder with a preallocated key/value cache."""
import os
import time

import torch
from torch import nn
from torch.nn import functional as F

VOCAB, DIM, HEADS, LAYERS, CONTEXT, BATCH = 1024, 192, 6, 4, 256, 6


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.RMSNorm(DIM)
        self.norm2 = nn.RMSNorm(DIM)
        self.qkv = nn.Linear(DIM, 3 * DIM, bias=False)
        self.out = nn.Linear(DIM, DIM, bias=False)
        self.gate = nn.Linear(DIM, 2 * DIM, bias=False)
        self.up = nn.Linear(DIM, 2 * DIM, bias=False)
        self.down = nn.Linear(2 * DIM, DIM, bias=False)
        shape = (BATCH, HEADS, CONTEXT, DIM // HEADS)
        self.register_buffer("k", torch.zeros(shape))
        self.register_buffer("v", torch.zeros(shape))

    def forward(self, x, pos, bias):
        b = x.shape[0]
        q, k, v = self.qkv(self.norm1(x)).view(b, 3, HEADS, -1).unbind(1)
        self.k.index_copy_(2, pos, k.unsqueeze(2))
        self.v.index_copy_(2, pos, v.unsqueeze(2))
        att = (q.unsqueeze(2) * self.k).sum(-1) * (DIM // HEADS) ** -0.5 + bias
        y = torch.softmax(att, dim=-1).unsqueeze(2) @ self.v
        x = x + self.out(y.reshape(b, DIM))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.place = nn.Embedding(CONTEXT, DIM)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.RMSNorm(DIM)
        self.head = nn.Linear(DIM, VOCAB, bias=False)
        self.register_buffer("slots", torch.arange(CONTEXT))

    def forward(self, token, pos):
        x = self.embed(token) + self.place(pos)
        bias = torch.where(self.slots <= pos, 0.0, float("-inf"))
        for block in self.blocks:
            x = block(x, pos, bias)
        return self.head(self.norm(x))


def pick(logits, temperature, gen):
    top, index = logits.topk(40, dim=-1)
    choice = torch.multinomial(torch.softmax(top / temperature, -1), 1, generator=gen)
    return index.gather(1, choice).squeeze(1)


def main():
    steps = int(os.environ.get("STEPS", "240"))
    torch.manual_seed(1)
    gen = torch.Generator().manual_seed(9)
    model = torch.compile(Decoder().eval())
    stories = [[] for _ in range(BATCH)]
    token = torch.randint(1, VOCAB, (BATCH,), generator=gen)
    took = []
    with torch.no_grad():
        for i in range(steps):
            start = time.perf_counter()
            logits = model(token, torch.tensor([i % CONTEXT]))
            token = pick(logits, 0.8 if i < 32 else 0.7, gen)
            for story, t in zip(stories, token.tolist()):
                story.append(t)
            if (token == 0).all().item():
                break
            took.append(time.perf_counter() - start)
    took.sort()
    print("distinct tokens:", [len(set(s)) for s in stories])
    print(f"{took[len(took) // 2] * 1e3:.2f} ms per token")


if __name__ == "__main__":
    main()
