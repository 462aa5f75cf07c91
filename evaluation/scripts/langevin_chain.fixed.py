"""Unadjusted Langevin sampler on a ring of coupled double wells."""
import os
import math
import time
import torch

torch.manual_seed(1)

WALKERS = 400
SITES = 1000
SWEEPS = 180
SWEEPS = int(os.environ.get("SWEEPS", SWEEPS))
BETA = 2.0


def force(x, coupling):
    left = torch.cat([x[:, -1:], x[:, :-1]], dim=1)
    right = torch.cat([x[:, 1:], x[:, :1]], dim=1)
    well = x - x * x * x
    return well + coupling * (left + right - 2 * x)


def langevin(x, coupling, dt, kick):
    f = force(x, coupling)
    return x + dt * f + math.sqrt(2.0 * 0.005 / BETA) * kick


class Averager:
    def __init__(self):
        self.n = 0
        self.mean = 0.0
        self.m2 = 0.0

    def push(self, v):
        self.n += 1
        d = v - self.mean
        self.mean += d / self.n
        self.m2 += d * (v - self.mean)

    @property
    def std(self):
        return math.sqrt(self.m2 / max(1, self.n - 1))


def main():
    step = torch.compile(langevin)
    x = torch.randn(WALKERS, SITES) * 0.1
    coupling = torch.tensor(0.25)
    order = Averager()
    laps = []
    for sweep in range(SWEEPS):
        tic = time.perf_counter()
        x = step(x, coupling, 0.005, torch.randn_like(x))
        laps.append(time.perf_counter() - tic)
        if sweep > 20:
            order.push(x.mean(dim=1).abs().mean().item())
        if sweep % 40 == 0:
            print(f"sweep {sweep:4d}  <x^2> = {x.square().mean():.4f}")
    laps = sorted(laps[SWEEPS // 2:])
    print(f"order parameter {order.mean:.4f} +- {order.std:.4f}")
    print(f"time per sweep {laps[len(laps) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
