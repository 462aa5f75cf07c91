# Worst-of basket under Heston dynamics, Monte Carlo with antithetic pairs off.
import os
import math
import time
from dataclasses import dataclass

import torch

torch.set_num_threads(1)
torch.manual_seed(20)

STEPS = int(os.environ.get("STEPS", "1500"))


@dataclass(frozen=True)
class Market:
    rate: float = 0.02
    kappa: float = 1.7
    theta: float = 0.05
    xi: float = 0.45
    rho: float = -0.6
    v0: float = 0.04
    horizon: float = 1.0
    days: int = 250


@torch.compile
def advance(logs, var, dt, kappa, theta, xi, rho, rate):
    z1 = torch.randn_like(logs)
    z2 = torch.randn_like(logs)
    vpos = var.clamp_min(0.0)
    root = torch.sqrt(vpos * dt)
    w = rho * z1 + math.sqrt(1.0 - rho * rho) * z2
    logs = logs + (rate - 0.5 * vpos) * dt + root * z1
    var = var + kappa * (theta - vpos) * dt + xi * root * w
    return logs, var


class Pricer:
    def __init__(self, mkt, paths, assets, strike):
        self.m = mkt
        self.shape = (paths, assets)
        self.strike = strike
        self.dt = mkt.horizon / mkt.days
        self.reset()

    def reset(self):
        self.logs = torch.zeros(self.shape)
        self.var = torch.full(self.shape, self.m.v0)
        self.day = 0

    def tick(self):
        m = self.m
        self.logs, self.var = advance(
            self.logs, self.var, self.dt, m.kappa, m.theta, m.xi, m.rho, m.rate
        )
        self.day += 1

    def payoff(self):
        worst = torch.exp(self.logs).amin(dim=1)
        p = (self.strike - worst).clamp_min(0.0)
        disc = math.exp(-self.m.rate * self.m.horizon)
        return disc * p.mean().item(), disc * p.std().item() / math.sqrt(len(p))


def main():
    pricer = Pricer(Market(), paths=100_000, assets=4, strike=1.0)
    with torch.no_grad():
        for _ in range(3):
            pricer.tick()
        pricer.reset()

        times = []
        runs = 0
        for _ in range(STEPS):
            t0 = time.perf_counter()
            pricer.tick()
            times.append(time.perf_counter() - t0)
            if pricer.day == pricer.m.days:
                price, err = pricer.payoff()
                print(f"run {runs}: worst-of put {price:.4f} +- {err:.4f}")
                pricer.reset()
                runs += 1

    times.sort()
    print(f"median step {times[len(times) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
