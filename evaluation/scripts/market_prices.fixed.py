"""Trading-game economy: every tick all villages revise their prices."""
import os
import time

import torch
import torch.nn as nn

STEPS = int(os.environ.get("STEPS", "8000"))


class Economy(nn.Module):
    def __init__(self, goods, villages):
        super().__init__()
        self.base = {f"good{i}": 1.0 + (i % 17) * 0.25 for i in range(goods)}
        self.level = sum(self.base.values()) / len(self.base)
        self.elastic = nn.Parameter(torch.rand(villages, 64))
        self.trend = nn.Linear(64, 64)

    def price_level(self):
        return self.level

    def forward(self, stock):
        level = self.price_level()
        want = torch.sigmoid(self.trend(stock)) * self.elastic
        price = level * torch.exp(-want * stock.clamp(-2, 2))
        return price / price.mean(1, keepdim=True)


def main():
    torch.manual_seed(4)
    torch.set_num_threads(1)
    eco = torch.compile(Economy(goods=5000, villages=2000))
    stock = torch.randn(2000, 64)
    t0 = time.perf_counter()
    with torch.no_grad():
        for tick in range(STEPS):
            price = eco(stock)
            stock = stock * 0.99 + 0.01 * (1 - price)
            if (tick + 1) % 200 == 0:
                t1 = time.perf_counter()
                print(f"tick {tick + 1} price {price.std():.4f} {(t1 - t0) / 200 * 1e3:.2f} ms/step", flush=True)
                t0 = t1


if __name__ == "__main__":
    main()
