import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

from helpers.scaling import to_unit


class PriceModel(nn.Module):
    def __init__(self, columns=24, width=192):
        super().__init__()
        self.first = nn.Linear(columns, width)
        self.second = nn.Linear(width, width)
        self.price = nn.Linear(width, 1)

    def forward(self, rows):
        h = to_unit(F.gelu(self.first(rows)) + torch.sin(self.first(rows)))
        h = F.silu(self.second(h)) * torch.sigmoid(h)
        return self.price(torch.tanh(h) + h)


class Fit:
    def __init__(self, rate):
        self.model = PriceModel()
        self.call = torch.compile(self.model)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=rate)

    def step(self, rows, prices):
        loss = F.huber_loss(self.call(rows).squeeze(-1), prices)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=45000)
    parser.add_argument("--lr", type=float, default=1e-3)
    args = parser.parse_args()
    torch.manual_seed(0)
    fit = Fit(args.lr)
    rows, prices = torch.randn(512, 24), torch.randn(512)
    for step in range(args.steps):
        loss = fit.step(rows, prices)
        if step % 1000 == 0:
            print(step, f"{loss:.4f}")


if __name__ == "__main__":
    main()
