"""Portfolio loss under a one-factor Gaussian copula, quasi-Monte-Carlo.

Uniform points come from a shifted rank-1 lattice; they become normal scores,
are mixed with the common factor and compared with the default thresholds.
"""
import os
import math
import time

import torch


class Ledger:
    def __init__(self, obligors, seed):
        gen = torch.Generator().manual_seed(seed)
        self.default_prob = 0.002 + 0.03 * torch.rand(obligors, generator=gen)
        self.exposure = torch.rand(obligors, generator=gen) + 0.2
        self.rho = 0.1 + 0.25 * torch.rand(obligors, generator=gen)
        self.threshold = normal_score(self.default_prob)


@torch.compiler.disable
def normal_score(u):
    return math.sqrt(2.0) * torch.erfinv(2.0 * u - 1.0)


def lattice(points, dims, seed):
    gen = torch.Generator().manual_seed(seed)
    rule = torch.rand(dims, generator=gen, dtype=torch.float64)
    index = torch.arange(points, dtype=torch.float64).unsqueeze(1)
    return torch.frac(index * rule).float()


@torch.compile
def portfolio_loss(base, shift, rho, threshold, exposure):
    u = torch.frac(base + shift).clamp(1e-6, 1.0 - 1e-6)
    score = normal_score(u)
    common, own = score[:, :1], score[:, 1:]
    asset = rho.sqrt() * common + (1.0 - rho).sqrt() * own
    severity = torch.sigmoid(4.0 * (threshold - asset)) * (asset < threshold)
    return (severity * exposure).sum(dim=1)


class RunningTail:
    """Mean loss and tail share, updated shift by shift."""

    def __init__(self, limit):
        self.limit = limit
        self.count = 0
        self.mean = 0.0
        self.beyond = 0.0

    def add(self, losses):
        self.count += 1
        self.mean += (losses.mean().item() - self.mean) / self.count
        share = (losses > self.limit).float().mean().item()
        self.beyond += (share - self.beyond) / self.count


def shifts(count, dims, seed):
    gen = torch.Generator().manual_seed(seed)
    return torch.rand(count, dims, generator=gen)


@torch.no_grad()
def main(points=2048, obligors=127, rounds=int(os.environ.get("STEPS", "2400")), warmup=20):
    ledger = Ledger(obligors, seed=1)
    base = lattice(points, obligors + 1, seed=2)
    moves = shifts(rounds + warmup, obligors + 1, seed=3)
    tail = RunningTail(limit=0.02 * ledger.exposure.sum().item())

    def price(k):
        return portfolio_loss(base, moves[k], ledger.rho, ledger.threshold, ledger.exposure)

    for k in range(warmup):
        price(k)

    begin = time.perf_counter()
    for k in range(warmup, warmup + rounds):
        tail.add(price(k))
        if tail.count % 600 == 0:
            print(f"{tail.count:5d} shifts  mean {tail.mean:.5f}  tail {tail.beyond:.5f}")
    spent = time.perf_counter() - begin
    print(f"{1e3 * spent / rounds:.3f} ms/shift")


if __name__ == "__main__":
    main()
