"""Predicts ferry delays from short crossings logs; every crossing day is one short pass over its log."""
import os

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

STEPS = int(os.environ.get("STEPS", "5000"))
LEGS, FIELDS, BATCH = 2048, 64, 128
torch.manual_seed(70)


class Log(Dataset):
    def __init__(self):
        rng = np.random.default_rng(70)
        self.rows = rng.standard_normal((LEGS, FIELDS), dtype=np.float32)
        self.late = np.tanh(self.rows[:, :4].sum(1))

    def __len__(self):
        return LEGS

    def __getitem__(self, i):
        return self.rows[i], self.late[i]


class Delay(nn.Module):
    def __init__(self):
        super().__init__()
        self.into = nn.Linear(FIELDS, 1024)
        self.mid = nn.Linear(1024, 1024)
        self.out = nn.Linear(1024, 1)

    def forward(self, x):
        h = torch.nn.functional.silu(self.into(x))
        h = h + torch.nn.functional.silu(self.mid(h))
        return self.out(h).squeeze(-1)


def days(loader):
    while True:
        yield from loader


def main():
    model = Delay().to("cuda")
    optim = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = DataLoader(Log(), batch_size=BATCH, shuffle=True, num_workers=2, drop_last=True)
    feed = days(loader)

    @torch.compile
    def objective(x, y):
        return torch.nn.functional.huber_loss(model(x), y)

    for step in range(STEPS):
        rows, late = next(feed)
        loss = objective(rows.to("cuda"), late.to("cuda"))
        loss.backward()
        optim.step()
        optim.zero_grad(set_to_none=True)
        if step % 400 == 0:
            print("leg", step, "loss", round(loss.item(), 5))


main()
