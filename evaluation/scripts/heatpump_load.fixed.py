"""Day-ahead load of a fleet of heat pumps from weather and building features."""
import os
import random
import time

import torch
from torch import nn
import torch.nn.functional as F

FEATURES = 192
HIDDEN = 512
HOURS = 24
BATCH = 256
STEPS = int(os.environ.get("STEPS", "4000"))


def seed_everything(seed):
    os.environ["PYTHONHASHSEED"] = str(seed)
    random.seed(seed)
    torch.manual_seed(seed)


class LoadModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(FEATURES, HIDDEN)
        self.mid = nn.ModuleList(nn.Linear(HIDDEN, HIDDEN) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(HIDDEN) for _ in range(2))
        self.hours = nn.Linear(HIDDEN, HOURS)

    def forward(self, x):
        h = F.silu(self.embed(x))
        for lin, norm in zip(self.mid, self.norms):
            h = h + F.silu(lin(norm(h)))
        return self.hours(h)


class Fleet:
    """Synthetic telemetry kept in memory."""

    def __init__(self, days):
        self.x = torch.randn(days * BATCH, FEATURES)
        mix = torch.randn(FEATURES, HOURS) / FEATURES ** 0.5
        self.y = torch.tanh(self.x @ mix) + 0.05 * torch.randn(days * BATCH, HOURS)
        self.days = days

    def day(self, i):
        lo = (i % self.days) * BATCH
        return self.x[lo:lo + BATCH], self.y[lo:lo + BATCH]


def pinball(pred, target, q=0.6):
    err = target - pred
    return torch.maximum(q * err, (q - 1) * err).mean()


def main():
    torch.set_num_threads(1)
    seed_everything(2024)
    fleet = Fleet(days=6)
    model = LoadModel()

    @torch.compile
    def objective(x, y):
        return pinball(model(x), y)

    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, fused=True)
    started = time.perf_counter()
    for step in range(STEPS):
        x, y = fleet.day(step)
        loss = objective(x, y)
        loss.backward()
        opt.step()
        opt.zero_grad()
        if step % 500 == 0:
            print(f"{step:5d}  pinball {loss.item():.4f}  {time.perf_counter() - started:.1f}s")


if __name__ == "__main__":
    main()
