"""Asian and look-back option values under a Heston model, with the shocks drawn
up front from a Sobol-like antithetic table so that re-pricing is repeatable."""
import argparse
import time

import torch

RATE = 0.03
DATES = 30


def simulate(spot, vol0, kappa, theta, xi, rho, z1, z2):
    n = z1.shape[0]
    dt = 1.0 / DATES
    root = dt ** 0.5
    price = torch.empty(n, DATES + 1)
    var = torch.empty(n, DATES + 1)
    price[:, 0] = spot
    var[:, 0] = vol0
    for k in range(DATES):
        v = var[:, k].clamp_min(0.0)
        sv = v.sqrt()
        w = rho * z1[:, k] + (1.0 - rho * rho).sqrt() * z2[:, k]
        price[:, k + 1] = price[:, k] * (1.0 + RATE * dt + sv * root * z1[:, k])
        var[:, k + 1] = var[:, k] + kappa * (theta - v) * dt + xi * sv * root * w
    return price, var


def values(spot, vol0, kappa, theta, xi, rho, strike, z1, z2):
    price, var = simulate(spot, vol0, kappa, theta, xi, rho, z1, z2)
    asian = (price.mean(dim=1) - strike).clamp_min(0.0)
    look = (price.amax(dim=1) - strike).clamp_min(0.0)
    swap = var.clamp_min(0.0).mean()
    return torch.stack([asian.mean(), look.mean(), swap])


def shocks(paths, seed):
    g = torch.Generator().manual_seed(seed)
    half = torch.randn(paths // 2, DATES, generator=g)
    return torch.cat([half, -half])


def quotes(count):
    """The market parameters seen during a trading day, as 0-d tensors."""
    g = torch.Generator().manual_seed(99)
    base = torch.tensor([100.0, 0.04, 1.5, 0.05, 0.4, -0.6, 100.0])
    spread = torch.tensor([4.0, 0.01, 0.3, 0.01, 0.05, 0.05, 3.0])
    for _ in range(count):
        yield (base + spread * (torch.rand(7, generator=g) - 0.5)).unbind(0)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=1800)
    ap.add_argument("--paths", type=int, default=12288)
    args = ap.parse_args()

    z1, z2 = shocks(args.paths, 3), shocks(args.paths, 4)
    pricer = torch.compile(values)
    book = torch.zeros(3)
    began = time.perf_counter()
    with torch.no_grad():
        for i, market in enumerate(quotes(args.steps)):
            out = pricer(*market, z1, z2)
            book += torch.exp(torch.tensor(-RATE)) * out
            if i % 300 == 299:
                a, l, s = (book / (i + 1)).tolist()
                print(f"{i + 1}: asian {a:.3f} look-back {l:.3f} variance {s:.4f}")
    print(f"{args.steps} quotes in {time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
