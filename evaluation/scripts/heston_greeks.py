"""Price down-and-out calls under Heston and bump their inputs for the Greeks."""
import argparse
import math

import torch

STEPS, YEARS = 10, 0.75
KAPPA, THETA, XI, RHO = 1.8, 0.05, 0.45, -0.6


def draws(paths, seed):
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(2, STEPS, paths, dtype=torch.float64, generator=generator)
    first = z[0]
    second = RHO * z[0] + math.sqrt(1 - RHO * RHO) * z[1]
    return first.contiguous(), second.contiguous()


@torch.compile
def note(log_spot, variance, rate, strike, first, second):
    dt = YEARS / STEPS
    x = log_spot.expand(first.shape[1])
    v = variance.expand(first.shape[1])
    lowest = x
    for dw, dz in zip(first.unbind(), second.unbind()):
        positive = v.clamp_min(0.0)
        shake = torch.sqrt(positive * dt)
        x = x + (rate - 0.5 * positive) * dt + shake * dw
        v = v + KAPPA * (THETA - positive) * dt + XI * shake * dz
        lowest = torch.minimum(lowest, x)
    alive = torch.sigmoid((lowest - torch.log(0.8 * strike)) * 150.0)
    paid = torch.relu(torch.exp(x) - strike) * alive
    return torch.exp(-rate * YEARS) * paid.mean()


class Desk:
    def __init__(self, paths):
        self.first, self.second = draws(paths, 11)
        self.rate = torch.tensor(0.03, dtype=torch.float64)

    def pilot(self, log_spot, variance, strike, paths=6144):
        return note(log_spot, variance, self.rate, strike, *draws(paths, 3))

    def price(self, log_spot, variance, strike):
        return note(log_spot, variance, self.rate, strike, self.first, self.second)

    def delta(self, log_spot, variance, strike, bump=1e-3):
        up = note(log_spot + bump, variance, self.rate, strike, self.first, self.second)
        down = note(log_spot - bump, variance, self.rate, strike, self.first, self.second)
        return (up - down) / (2 * bump * torch.exp(log_spot))

    def vega(self, log_spot, variance, strike, bump=1e-4):
        up = note(log_spot, variance + bump, self.rate, strike, self.first, self.second)
        return (up - self.price(log_spot, variance, strike)) / bump


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--notes", type=int, default=12000)
    parser.add_argument("--paths", type=int, default=49152)
    args = parser.parse_args()
    desk = Desk(args.paths)
    market = torch.linspace(4.4, 4.8, 41, dtype=torch.float64).unbind()
    strikes = torch.linspace(85.0, 115.0, 31, dtype=torch.float64).unbind()
    variance = torch.tensor(0.04, dtype=torch.float64)
    guess = desk.pilot(market[20], variance, strikes[15])
    print(f"pilot {guess.item():.4f}")
    book = torch.zeros(3, dtype=torch.float64)
    for number in range(args.notes):
        log_spot, strike = market[number % 41], strikes[number % 31]
        book += torch.stack([
            desk.price(log_spot, variance, strike),
            desk.delta(log_spot, variance, strike),
            desk.vega(log_spot, variance, strike),
        ])
    print("book", [round(v, 3) for v in book.tolist()])


if __name__ == "__main__":
    main()
