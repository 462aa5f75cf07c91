"""Learns the vector field of foxes and hares from noisy counts."""
import argparse

import torch
import torch.nn as nn


class Field(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.a = nn.Linear(2, hidden)
        self.b = nn.Linear(hidden, hidden)
        self.c = nn.Linear(hidden, 2)

    def forward(self, y):
        h = torch.tanh(self.a(y))
        return self.c(torch.tanh(self.b(h) + h))


class RungeKutta(nn.Module):
    def __init__(self, field, steps, span=1.0):
        super().__init__()
        self.field, self.steps, self.h = field, steps, span / steps

    def advance(self, y):
        k1 = self.field(y)
        k2 = self.field(y + self.h / 2 * k1)
        k3 = self.field(y + self.h / 2 * k2)
        k4 = self.field(y + self.h * k3)
        return y + self.h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    def forward(self, y):
        for _ in range(self.steps):
            y = self.advance(y)
        return y


def truth(y, steps=50):
    for _ in range(steps):
        hares, foxes = y.unbind(1)
        y = y + 1 / steps * torch.stack([hares * (1.1 - 0.4 * foxes), foxes * (0.1 * hares - 0.4)], 1)
    return y


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=12000)
    parser.add_argument("--substeps", type=int, default=3)
    parser.add_argument("--herds", type=int, default=128)
    args = parser.parse_args()
    torch.manual_seed(12)
    start = torch.rand(2048, 2) * 4 + 0.5
    later = truth(start) + 0.01 * torch.randn(2048, 2)
    solver = torch.compile(RungeKutta(Field(), args.substeps))
    optimizer = torch.optim.Adam(solver.parameters(), lr=1e-3)
    for update in range(args.updates):
        rows = torch.randint(2048, (args.herds,))
        loss = (solver(start[rows]) - later[rows]).square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if update % 500 == 0:
            print(f"{update:5d} {loss.item():.5f}")


if __name__ == "__main__":
    main()
