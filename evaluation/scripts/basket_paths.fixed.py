"""Greeks of a down-and-out basket option by pathwise Monte Carlo with a local-vol surface."""
import os
import math
import torch

ASSETS, PATHS, MATURITY, SLICES = 4, 6000, 1.0, 12
STEPS = int(os.environ.get("STEPS", "1000"))


class Market:
    def __init__(self):
        corr = 0.4 * torch.ones(ASSETS, ASSETS) + 0.6 * torch.eye(ASSETS)
        self.chol = torch.linalg.cholesky(corr)
        self.spot = torch.tensor([100.0, 96.0, 104.0, 99.0])
        self.vol = torch.tensor([0.22, 0.31, 0.18, 0.27])
        self.rate = 0.02
        self.weights = torch.full((ASSETS,), 0.25)


def evolve(logs, draws, vol, chol, rate, dt, floor):
    alive = torch.ones(logs.shape[1])
    for k in range(SLICES):
        noise = chol @ draws[k]
        money = math.log(100.0) - logs
        skew = 1.0 + 0.3 * torch.tanh(money) + 0.1 * torch.exp(-money * money) * torch.sin(4.0 * money)
        sigma = vol * skew * torch.sqrt(1.0 + 0.05 * torch.log1p(money * money))
        logs = logs + (rate - 0.5 * sigma * sigma) * dt + sigma * math.sqrt(dt) * noise
        dist = torch.exp(logs).mean(0) - floor
        alive = alive * torch.sigmoid(2.0 * dist)
    return torch.exp(logs), alive


evolve = torch.compile(evolve)


def price(market, spot, vol, strike, floor):
    start = torch.log(spot)[:, None].repeat(1, PATHS)
    final, alive = evolve(start, torch.randn(SLICES, ASSETS, PATHS), vol[:, None], market.chol, market.rate, MATURITY / SLICES, floor)
    basket = market.weights @ final
    payoff = torch.relu(basket - strike) * alive
    return math.exp(-market.rate * MATURITY) * payoff.mean()


def main():
    torch.manual_seed(2024)
    market = Market()
    spot = market.spot
    vol = market.vol
    book = []
    running = torch.zeros(2 * ASSETS)
    for batch in range(STEPS):
        bump_s = torch.zeros(ASSETS)
        bump_s[batch % ASSETS] = 0.5
        up = price(market, spot + bump_s, vol, 100.0, 80.0)
        down = price(market, spot - bump_s, vol, 100.0, 80.0)
        running[batch % ASSETS] += float(up - down)
        book.append(float(up + down) / 2)
        if batch % 50 == 0:
            mean = sum(book) / len(book)
            print(f"batch {batch:4d}  price {mean:.4f}  delta sum {running[:ASSETS].tolist()[0]:+.3f}")
    mean = sum(book) / len(book)
    sd = (sum((b - mean) ** 2 for b in book) / len(book)) ** 0.5
    print(f"final price {mean:.4f} +- {sd / len(book) ** 0.5:.4f}")


if __name__ == "__main__":
    with torch.no_grad():
        main()
