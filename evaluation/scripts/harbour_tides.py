"""Fit the tide gauge of a harbour with damped harmonics."""
import argparse
import math

import torch
from torch import nn


class Tides(nn.Module):
    def __init__(self, constituents=56):
        super().__init__()
        self.angle = nn.Linear(1, constituents)
        with torch.no_grad():
            self.angle.weight[:, 0] = torch.linspace(0.2, 4.0, constituents)
            self.angle.bias.uniform_(0, 2 * math.pi)
        self.height = nn.Linear(constituents, 1)

    def forward(self, hours):
        angle = self.angle(hours)
        wave = torch.sin(angle) * torch.exp(-0.02 * hours)
        shallow = torch.tanh(wave + 0.1 * torch.cos(2 * angle))
        return self.height(shallow * torch.sigmoid(wave)).squeeze(-1)


class Trainer:
    def __init__(self, lr):
        self.tides = Tides()
        self.optimizer = torch.optim.Adam(self.tides.parameters(), lr=lr)
        self.loss = torch.compile(self._loss)
        self.hold_out = torch.compile(self._hold_out)

    def _loss(self, hours, level):
        return (self.tides(hours) - level).square().mean()

    def _hold_out(self, hours, level, epoch):
        error = (self.tides(hours) - level).abs()
        print("epoch", epoch, "held out:", error.mean())
        return error.amax()

    def epoch(self, number, hours, level, batch=2048):
        order = torch.randperm(len(hours) - batch)
        for first in range(0, len(order) - batch + 1, batch):
            rows = order[first : first + batch]
            loss = self.loss(hours[rows], level[rows])
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
        with torch.no_grad():
            return self.hold_out(hours[-batch:], level[-batch:], number)


def gauge(samples):
    hours = torch.rand(samples, 1) * 48
    level = torch.sin(0.5 * hours) + 0.4 * torch.sin(1.01 * hours) + 0.05 * torch.randn(samples, 1)
    return hours, level.squeeze(-1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--samples", type=int, default=2048 * 81)
    parser.add_argument("--lr", type=float, default=2e-3)
    args = parser.parse_args()
    torch.manual_seed(0)
    trainer = Trainer(args.lr)
    hours, level = gauge(args.samples)
    for number in range(args.epochs):
        worst = trainer.epoch(number, hours, level)
    print("worst error at the end", worst.item())
