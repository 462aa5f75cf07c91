"""Value a desk of callable bonds on simulated short rates."""
import argparse
import bisect
import itertools
import random
from dataclasses import dataclass, field

import torch


@dataclass(frozen=True)
class Terms:
    name: str
    coupon: float
    calls: str


@dataclass
class ZeroCurve:
    days: list = field(default_factory=lambda: [30, 90, 180, 365, 730, 1825, 3650])
    rates: list = field(default_factory=lambda: [0.021, 0.022, 0.024, 0.026, 0.029, 0.031, 0.033])

    def at(self, day):
        right = bisect.bisect_left(self.days, day)
        left = max(right - 1, 0)
        right = min(right, len(self.days) - 1)
        return 0.5 * (self.rates[left] + self.rates[right])


def pricer(terms, curve, quarters=12):
    """A function that values one bond, given a scenario of rates for each quarter."""
    calls = terms.calls

    @torch.compile
    def price(rates, coupon):
        value = torch.ones_like(rates[0])
        for quarter in reversed(range(quarters)):
            short = torch.nn.functional.softplus(rates[quarter] * 40) / 40
            value = (value + coupon / 4) * torch.exp(-short / 4)
            if calls[quarter] == "C":
                value = value - torch.nn.functional.softplus(60 * (value - 1)) / 60
            elif calls[quarter] == "P":
                value = value + torch.nn.functional.softplus(60 * (0.97 - value)) / 60
        spread = torch.tanh(value - 1) * torch.sqrt(1e-4 + value.square())
        return (value - spread * curve.at(quarters * 91)).mean()

    return price


def issue(rng, count):
    for number in range(count):
        calls = "".join(rng.choice("C--P") for _ in range(12))
        yield Terms(f"bond-{number:02d}", rng.uniform(0.01, 0.06), calls)


class Desk:
    def __init__(self, bonds, curve):
        self.bonds = list(bonds)
        self.coupons = {bond.name: torch.tensor(bond.coupon) for bond in self.bonds}
        self.pricers = {bond.name: pricer(bond, curve) for bond in self.bonds}

    def value(self, bond, rates):
        return self.pricers[bond.name](rates, self.coupons[bond.name])


def scenarios(paths, quarters=12):
    while True:
        yield 0.03 + torch.cumsum(0.004 * torch.randn(quarters, paths), 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--values", type=int, default=48000)
    parser.add_argument("--bonds", type=int, default=24)
    parser.add_argument("--paths", type=int, default=8192)
    args = parser.parse_args()
    torch.manual_seed(1)
    desk = Desk(issue(random.Random(1), args.bonds), ZeroCurve())
    stored = list(itertools.islice(scenarios(args.paths), 8))
    total = torch.zeros(())
    with torch.no_grad():
        for number in range(args.values):
            total += desk.value(desk.bonds[number % args.bonds], stored[number % 8])
    print("mean value", (total / args.values).item())

