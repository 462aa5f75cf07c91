"""A bank of two-state Kalman filters (level and drift), one for each quoted instrument series.

The bank is stored as five flat vectors; the 2 x 2 algebra is written out by hand.
"""
import os
import time
from typing import NamedTuple

import torch

device = "cuda"

SERIES = 64_000_000
TICKS = int(os.environ.get("STEPS", "20000"))
REPORT = 4_000


class Bank(NamedTuple):
    level: torch.Tensor
    drift: torch.Tensor
    p00: torch.Tensor
    p01: torch.Tensor
    p11: torch.Tensor


class Noise(NamedTuple):
    q_level: float = 1.0e-4
    q_drift: float = 1.0e-6
    r_quote: float = 2.5e-3
    robust: float = 4.0


def fresh_bank(n):
    return Bank(
        level=torch.zeros(n, device=device),
        drift=torch.zeros(n, device=device),
        p00=torch.full((n,), 1.0, device=device),
        p01=torch.zeros(n, device=device),
        p11=torch.full((n,), 0.01, device=device),
    )


def predict(bank, noise):
    level = bank.level + bank.drift
    p00 = bank.p00 + 2.0 * bank.p01 + bank.p11 + noise.q_level
    p01 = bank.p01 + bank.p11
    p11 = bank.p11 + noise.q_drift
    return Bank(level, bank.drift, p00, p01, p11)


def correct(bank, quote, noise):
    innovation = quote - bank.level
    spread = bank.p00 + noise.r_quote
    z = innovation * torch.rsqrt(spread)
    weight = 1.0 / (1.0 + (z / noise.robust).square())
    k0 = weight * bank.p00 / spread
    k1 = weight * bank.p01 / spread
    keep = 1.0 - k0
    return Bank(
        level=bank.level + k0 * innovation,
        drift=bank.drift + k1 * innovation,
        p00=keep * bank.p00,
        p01=keep * bank.p01,
        p11=bank.p11 - k1 * bank.p01,
    )


def tick(bank, quote):
    noise = Noise()
    return correct(predict(bank, noise), quote, noise)


def market(count, generator):
    """Quotes of a few consecutive ticks, replayed in a cycle."""
    base = torch.randn(SERIES, generator=generator, device=device).mul_(0.3)
    quotes = []
    for _ in range(count):
        shock = torch.randn(SERIES, generator=generator, device=device).mul_(0.05)
        quotes.append(base + shock)
    return quotes


def main():
    gen = torch.Generator(device=device).manual_seed(99)
    quotes = market(4, gen)
    bank = fresh_bank(SERIES)
    advance = torch.compile(tick)
    for n in range(3):
        bank = advance(bank, quotes[n])
    torch.cuda.synchronize()

    t0 = time.perf_counter()
    for n in range(1, TICKS + 1):
        bank = advance(bank, quotes[n % len(quotes)])
        if n % REPORT == 0:
            torch.cuda.synchronize()
            cost = (time.perf_counter() - t0) / n * 1e3
            print(f"tick {n:6d}  mean level {bank.level.mean().item():+.5f}  "
                  f"gain {bank.p00.mean().item():.5f}  {cost:.3f} ms/tick")
    torch.cuda.synchronize()
    print("drift spread", bank.drift.std().item())


if __name__ == "__main__":
    with torch.inference_mode():
        main()
