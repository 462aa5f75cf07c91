"""Fits a small book of swaptions under a two-factor model; the floor of rates is read from the day's curve."""
import argparse
import math

import torch

torch._dynamo.config.capture_scalar_outputs = True


class Book:
    def __init__(self, deals, paths, seed):
        generator = torch.Generator().manual_seed(seed)
        self.strikes = torch.rand(deals, 1, generator=generator) * 0.04 + 0.01
        self.notional = torch.rand(deals, generator=generator) * 10
        self.shocks = torch.randn(2, paths, generator=generator)
        self.curves = torch.rand(32, 12, generator=generator) * 0.02 + 0.02


class Desk:
    def __init__(self, book):
        self.book = book
        self.value = torch.compile(self._value, fullgraph=True)

    def _value(self, curve, spread):
        floor = curve.min().item() * 0.25
        level = curve.mean()
        fast, slow = self.book.shocks.unbind()
        rates = level + spread * torch.tanh(fast) * 0.01 + 0.006 * slow * torch.exp(-slow.square() * 0.1)
        rates = floor + torch.log1p(torch.exp((rates - floor) * 200)) / 200
        annuity = (1 - torch.exp(-10 * rates)) / rates
        gain = rates - self.book.strikes
        payoff = torch.log1p(torch.exp(-gain.abs() * 800)) / 800 + gain.clamp(min=0)
        return (self.book.notional * (payoff * annuity).mean(1)).sum()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=6000)
    parser.add_argument("--deals", type=int, default=80)
    parser.add_argument("--paths", type=int, default=4000)
    args = parser.parse_args()
    desk = Desk(Book(args.deals, args.paths, seed=14))
    total = torch.zeros(())
    with torch.no_grad():
        for day in range(args.days):
            spread = torch.tensor(1 + 0.3 * math.sin(day / 50))
            total += desk.value(desk.book.curves[day % 32], spread)
    print(f"average value {float(total) / args.days:.4f}")


if __name__ == "__main__":
    main()
