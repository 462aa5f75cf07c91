"""Tabular regression with periodic features; logs the loss at every step."""
import argparse
import csv
import io

import torch
from torch import nn


class Periodic(nn.Module):
    def __init__(self, columns, freqs):
        super().__init__()
        self.freq = nn.Parameter(torch.randn(columns, freqs))
        self.phase = nn.Parameter(torch.rand(columns, freqs))

    def forward(self, x):
        u = x[..., None] * self.freq + self.phase
        return (torch.sin(u) * torch.sigmoid(u) + torch.tanh(u) * torch.cos(u)).flatten(1)


class Taster(nn.Module):
    def __init__(self, columns=11, freqs=16):
        super().__init__()
        self.features = Periodic(columns, freqs)
        self.out = nn.Linear(columns * freqs, 1)

    def forward(self, x):
        h = self.features(x)
        h = nn.functional.gelu(h) - 0.1 * torch.log1p(h * h)
        return self.out(h).squeeze(-1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=5400)
    args = ap.parse_args()
    torch.manual_seed(40)
    wines = torch.randn(4898, 11)
    quality = wines[:, 0] - wines[:, 3] * wines[:, 5]
    model = Taster()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    taste = torch.compile(model)
    log = csv.writer(io.StringIO())
    lo = 0
    for step in range(args.steps):
        x, y = wines[lo:lo + 1024], quality[lo:lo + 1024]
        loss = nn.functional.mse_loss(taste(x), y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        log.writerow([step, loss.item(), len(x)])
        lo = lo + 1024 if lo + 1024 < len(wines) else 0
        if step % 250 == 0:
            print(f"step {step:5d} rows {len(x):4d} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
