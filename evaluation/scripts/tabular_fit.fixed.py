"""Regress yearly energy use of buildings from a wide table of meter features."""
import argparse
import time

import numpy as np
import torch
from torch import nn


def load_columns(rows, columns, seed):
    """One array per meter feature, as they arrive from the column store."""
    rng = np.random.default_rng(seed)
    season = np.sin(np.linspace(0, 60, rows))
    for c in range(columns):
        yield (0.3 * season * (c % 5) + rng.standard_normal(rows)).astype(np.float32)


class Table:
    def __init__(self, rows, columns, seed):
        block = np.stack(list(load_columns(rows, columns, seed)))
        block -= block.mean(axis=1, keepdims=True)
        self.x = torch.from_numpy(block).T
        mix = torch.linspace(-1, 1, columns)
        self.y = torch.tanh(self.x @ mix / columns ** 0.5) + 0.1 * self.x[:, 0] * self.x[:, 1]
        self.gen = torch.Generator().manual_seed(seed)

    def draw(self, n):
        rows = torch.randint(0, self.x.shape[0], (n,), generator=self.gen)
        return self.x[rows], self.y[rows]


class Energy(nn.Module):
    def __init__(self, columns, width):
        super().__init__()
        self.enter = nn.Linear(columns, width)
        self.mid = nn.ModuleList([nn.Linear(width, width) for _ in range(2)])
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2)])
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        h = self.enter(x)
        for lin, norm in zip(self.mid, self.norms):
            h = h + nn.functional.gelu(lin(norm(h)))
        return self.out(h).squeeze(-1)


class Trainer:
    def __init__(self, table, width, lr):
        self.table = table
        self.model = Energy(table.x.shape[1], width)
        self.forward = torch.compile(self.model)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=lr, fused=True)

    def step(self, n):
        x, y = self.table.draw(n)
        pred = self.forward(x)
        loss = nn.functional.huber_loss(pred, y)
        loss.backward()
        self.opt.step()
        self.opt.zero_grad()
        return loss.detach()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=1600)
    ap.add_argument("--batch", type=int, default=1024)
    ap.add_argument("--width", type=int, default=64)
    args = ap.parse_args()

    torch.manual_seed(4)
    trainer = Trainer(Table(400_000, 200, 8), args.width, 1e-3)
    began, total = time.perf_counter(), torch.zeros(())
    for i in range(1, args.steps + 1):
        total += trainer.step(args.batch)
        if i % 100 == 0:
            print(f"{i:5d} huber {total.item() / 100:.5f} {time.perf_counter() - began:.1f} s")
            total.zero_()


if __name__ == "__main__":
    main()
