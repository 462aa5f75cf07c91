"""Revalue a strip of knock-out options on recorded shock paths.

The shocks are drawn once and stored; every revaluation shifts the market data
and walks all paths through the whole calendar again.
"""
import os
import math
import time
from dataclasses import dataclass, replace

import torch

torch.set_num_threads(1)

STEPS = int(os.environ.get("STEPS", "28000"))
PATHS = 32768
DATES = 24


@dataclass(frozen=True)
class Market:
    spot: torch.Tensor
    vol: torch.Tensor
    rate: torch.Tensor
    skew: torch.Tensor


@dataclass(frozen=True)
class Terms:
    strike: torch.Tensor
    barrier: torch.Tensor
    maturity: float


@torch.compile(fullgraph=True)
def revalue(market, terms, shocks):
    dt = terms.maturity / DATES
    x = torch.log(market.spot).expand(PATHS)
    alive = torch.ones(PATHS)
    ref = torch.log(market.spot)
    for k in range(DATES):
        level = market.vol * torch.exp(-market.skew * (x - ref))
        x = x + (market.rate - 0.5 * level * level) * dt + level * math.sqrt(dt) * shocks[k]
        alive = alive * torch.sigmoid(80.0 * (torch.log(terms.barrier) - x))
    payoff = torch.clamp(torch.exp(x) - terms.strike, min=0.0) * alive
    df = torch.exp(-market.rate * terms.maturity)
    return df * payoff.mean(), alive.mean(), payoff.std()


def market_walk(n: int, seed: int):
    g = torch.Generator().manual_seed(seed)
    moves = 0.01 * torch.randn(n, 3, generator=g)
    base = Market(
        spot=torch.tensor(100.0),
        vol=torch.tensor(0.22),
        rate=torch.tensor(0.03),
        skew=torch.tensor(0.6),
    )
    for k in range(n):
        yield replace(
            base,
            spot=base.spot * (1 + moves[k, 0]),
            vol=base.vol * (1 + moves[k, 1]),
            rate=base.rate * (1 + moves[k, 2]),
        )


def main():
    g = torch.Generator().manual_seed(33)
    half = torch.randn(DATES, PATHS // 2, generator=g)
    shocks = torch.cat([half, -half], dim=1).contiguous()
    terms = Terms(torch.tensor(98.0), torch.tensor(140.0), 1.0)
    markets = list(market_walk(256, 1))
    book = []
    t0 = time.time()
    with torch.no_grad():
        for step in range(STEPS):
            price, survive, spread = revalue(markets[step % len(markets)], terms, shocks)
            if step % 50 == 0:
                book.append(price.item())
            if step % 7000 == 0:
                print(f"{step:6d} price {price.item():.4f} alive {survive.item():.4f}")
    mean = sum(book) / len(book)
    print(f"mean price {mean:.5f} last spread {spread.item():.4f} {time.time() - t0:.1f}s")


if __name__ == "__main__":
    main()
