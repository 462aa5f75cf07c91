"""Score next week's sales for every shop."""
import argparse

import torch
import torch.nn as nn


class Forecast(nn.Module):
    def __init__(self, weeks=52, width=128):
        super().__init__()
        self.season = nn.Linear(weeks, width)
        self.trend = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)

    def forward(self, sales):
        h = torch.tanh(self.season(sales)) * torch.exp(-sales.mean(-1, keepdim=True).square())
        scale = h.std().item() + 1e-3
        h = torch.sigmoid(self.trend(h / scale)) * torch.sin(h) + torch.cos(h)
        return self.out(h).squeeze(-1)


class Nightly:
    def __init__(self, shops=512):
        self.model = torch.compile(Forecast().eval())
        self.sales = torch.rand(7, shops, 52)

    def run(self, nights):
        total = 0.0
        for night in range(nights):
            forecast = self.model(self.sales[night % 7])
            total = total + forecast.detach().mean()
        return total / max(nights, 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nights", type=int, default=30000)
    args = parser.parse_args()
    torch.manual_seed(0)
    print(float(Nightly().run(args.nights)))


if __name__ == "__main__":
    main()
