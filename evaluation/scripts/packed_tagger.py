"""Sequence tagging over packed variable-length utterances."""
import random
import time

import torch
from torch import nn


class GatedConvBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.taps = nn.Parameter(torch.randn(5, dim) * 0.2)
        self.norm = nn.RMSNorm(dim)
        self.gain = nn.Parameter(torch.ones(dim))

    def forward(self, x, same):
        y = x * self.taps[2]
        for k, lag in ((0, 2), (1, 1)):
            y = y + self.taps[k] * nn.functional.pad(x, (0, 0, lag, 0))[:-lag] * same[:, lag - 1: lag]
        gate = torch.sigmoid(y) * nn.functional.gelu(self.norm(y), approximate="tanh")
        return x + self.gain * gate


class Tagger(nn.Module):
    def __init__(self, vocab=2000, dim=80, tags=9, depth=4):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList(GatedConvBlock(dim) for _ in range(depth))
        self.out = nn.Linear(dim, tags)

    def forward(self, tokens, same):
        x = self.emb(tokens)
        for blk in self.blocks:
            x = blk(x, same)
        return self.out(x)


def pack(lengths):
    total = sum(lengths)
    seg = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
    same = torch.zeros(total, 2)
    same[1:, 0] = (seg[1:] == seg[:-1]).float()
    same[2:, 1] = (seg[2:] == seg[:-2]).float()
    tokens = torch.randint(0, 2000, (total,))
    return tokens, same, tokens % 9


def main():
    random.seed(0)
    torch.manual_seed(0)
    model = Tagger()
    run = torch.compile(model)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    data = [pack([random.randint(20, 90) for _ in range(64)]) for _ in range(40)]

    def step(tokens, same, tags):
        torch._dynamo.mark_dynamic(tokens, 0)
        torch._dynamo.mark_dynamic(same, 0)
        logits = run(tokens, same)
        loss = nn.functional.cross_entropy(logits, tags)
        loss.backward()
        opt.step()
        opt.zero_grad()
        return loss.detach()

    for item in data[:4]:
        step(*item)

    durations, seen = [], 0
    for i in range(200):
        item = random.choice(data)
        t0 = time.perf_counter()
        loss = step(*item)
        durations.append(time.perf_counter() - t0)
        seen += len(item[0])
        if i % 50 == 0:
            print(f"{i:4d} loss {loss.item():.4f} tokens {seen}")
    durations.sort()
    print(f"median {durations[len(durations) // 2] * 1e3:.2f} ms")


if __name__ == "__main__":
    main()
