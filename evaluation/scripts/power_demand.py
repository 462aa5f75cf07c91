"""Forecast the demand of feeders in a power grid with a small dilated network."""
import argparse
import copy
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Windows(Dataset):
    """A batch of windows at a time: indices come from the sampler as a list."""

    def __init__(self, feeders=64, hours=1024, past=168, ahead=24):
        t = torch.arange(hours) / 24
        base = torch.sin(2 * math.pi * (t + torch.rand(feeders, 1))) + 0.4 * torch.sin(2 * math.pi * t / 7)
        self.load = base + 0.1 * torch.randn(feeders, hours)
        self.views = self.load.unfold(1, past + ahead, 24).flatten(0, 1)
        self.past = past

    def __len__(self):
        return len(self.views)

    def __getitems__(self, rows):
        part = self.views[torch.tensor(rows)]
        return part[:, : self.past], part[:, self.past:]


class Stage(nn.Module):
    """Looks back by some hours in each channel."""

    def __init__(self, width, dilation):
        super().__init__()
        self.back = dilation
        self.near, self.far, self.bend = (nn.Parameter(0.5 * torch.randn(width, 1)) for _ in range(3))

    def forward(self, x):
        before = nn.functional.pad(x, (self.back, 0))[..., : -self.back]
        a = torch.tanh(self.near * x + self.far * before)
        b = torch.sigmoid(self.bend * (before - x))
        return x + a * b + 0.2 * torch.sin(a) * torch.exp(-b.square())


class Forecaster(nn.Module):
    def __init__(self, width=16, stages=2, past=168, ahead=24):
        super().__init__()
        self.up = nn.Conv1d(1, width, 1)
        self.stages = nn.Sequential(*(Stage(width, 2 ** i) for i in range(stages)))
        self.down = nn.Linear(width * 7, ahead)
        self.days = past // 24

    def forward(self, past):
        mean, scale = past.mean(1, keepdim=True), past.std(1, keepdim=True) + 1e-3
        h = self.stages(self.up(((past - mean) / scale).unsqueeze(1)))
        h = h.unflatten(-1, (self.days, 24)).mean(-1).flatten(1)
        return self.down(nn.functional.gelu(h)) * scale + mean


def pinball(forecast, truth, quantile=0.6):
    error = truth - forecast
    return torch.maximum(quantile * error, (quantile - 1) * error).mean()


class Trainer:
    def __init__(self, model, rate=2e-3):
        self.raw, self.model = model, torch.compile(model)
        self.best, self.best_loss = None, math.inf
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 4000)

    def epoch(self, loader):
        running = 0.0
        for past, ahead in loader:
            loss = pinball(self.model(past), ahead)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            self.schedule.step()
            running += loss.item()
        return running / len(loader)

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            loss = self.epoch(loader)
            if loss < self.best_loss:
                self.best, self.best_loss = copy.deepcopy(self.raw.state_dict()), loss
            print(f"epoch {epoch}: {loss:.4f} (best {self.best_loss:.4f})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=150)
    args = parser.parse_args()
    torch.manual_seed(8)
    loader = DataLoader(Windows(), batch_size=128, shuffle=True, drop_last=True, collate_fn=tuple)
    Trainer(Forecaster()).fit(loader, args.epochs)
