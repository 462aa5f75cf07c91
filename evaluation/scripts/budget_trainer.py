"""Trains a small token-mixing classifier until a compute budget is spent."""
import math
import time
from contextlib import ExitStack

import torch
import torch.nn as nn
from torch.utils.flop_counter import FlopCounterMode

BUDGET = 2.2e11


class ShiftMix(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.alpha = nn.Parameter(torch.full((dim,), 0.5))
        self.beta = nn.Parameter(torch.full((dim,), 0.25))
        self.norm = nn.LayerNorm(dim)

    def forward(self, x):
        prev = nn.functional.pad(x, (0, 0, 1, 0))[:, :-1]
        nxt = nn.functional.pad(x, (0, 0, 0, 1))[:, 1:]
        h = x + self.alpha * prev + self.beta * nxt
        h = nn.functional.silu(self.norm(h)) * torch.tanh(h)
        return x + h


class Mixer(nn.Module):
    def __init__(self, vocab=512, dim=64, depth=2, classes=10):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.blocks = nn.Sequential(*(ShiftMix(dim) for _ in range(depth)))
        self.head = nn.Linear(dim, classes)

    def forward(self, ids):
        return self.head(self.blocks(self.emb(ids)).mean(1))


class Trainer:
    def __init__(self, model, budget):
        self.model = model
        self.budget = budget
        self.opt = torch.optim.AdamW(model.parameters(), lr=2e-3, fused=True)
        self.loss = torch.compile(self._loss)
        self.durations = []

    def _loss(self, ids, y):
        return nn.functional.cross_entropy(self.model(ids), y, label_smoothing=0.05)

    def one(self, ids, y):
        t0 = time.perf_counter()
        loss = self.loss(ids, y)
        loss.backward()
        self.opt.step()
        self.opt.zero_grad()
        self.durations.append(time.perf_counter() - t0)
        return loss.detach()

    def fit(self, data, max_steps, skip=5):
        for k in range(skip):
            self.one(*data[k % len(data)])
        self.durations.clear()
        with ExitStack() as stack:
            meter = stack.enter_context(FlopCounterMode(display=False))
            for step in range(max_steps):
                loss = self.one(*data[step % len(data)])
                if step % 40 == 0:
                    print(f"step {step:4d} loss {loss.item():.4f}")
                if meter.get_total_flops() > self.budget:
                    break
        return step + 1


def make_data(n, batch=64, length=64):
    g = torch.Generator().manual_seed(1)
    out = []
    for _ in range(n):
        ids = torch.randint(0, 512, (batch, length), generator=g)
        out.append((ids, ids.float().mean(1).div(26).long() % 10))
    return out


if __name__ == "__main__":
    torch.manual_seed(0)
    trainer = Trainer(Mixer(), BUDGET)
    n = trainer.fit(make_data(12), max_steps=160)
    mid = sorted(trainer.durations)[len(trainer.durations) // 2]
    print(f"{n} steps, median {mid * 1e3:.2f} ms, perplexity floor {math.log(10):.3f}")
