"""Weights of parcels: a little regression fed from a ledger of records."""
import os

import torch
from torch.utils.data import DataLoader, Dataset

STEPS = int(os.environ.get("STEPS", "2500"))
torch.manual_seed(2)


class Ledger(Dataset):
    def __init__(self, parcels, marks):
        self.rows = torch.rand(parcels, marks)
        self.weights = self.rows.mean(1) * 4.0

    def __len__(self):
        return len(self.rows)

    def __getitems__(self, i):
        row = self.rows[i]
        return (row - 0.5) * 2.0, self.weights[i]


class Scale(torch.nn.Module):
    def __init__(self, marks):
        super().__init__()
        self.first = torch.nn.Linear(marks, 32)
        self.last = torch.nn.Linear(32, 1)

    def forward(self, rows, weights):
        guess = self.last(torch.nn.functional.gelu(self.first(rows))).squeeze(-1)
        return torch.nn.functional.smooth_l1_loss(guess, weights)


def forever(loader):
    while True:
        yield from loader


ledger = Ledger(8192, 64)
loader = DataLoader(ledger, batch_size=512, shuffle=True, collate_fn=tuple)
scale = Scale(64)
weigh = torch.compile(scale)
opt = torch.optim.SGD(scale.parameters(), lr=0.05)
batches = forever(loader)
for step in range(STEPS):
    rows, weights = next(batches)
    loss = weigh(rows, weights)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 100 == 0:
        print(f"{step:6d} loss {loss.item():.5f}")
