"""Price a down-and-out call under a mean-reverting volatility by simulation."""
import math
import os
import time

import torch

PATHS = 60_000
STEPS = int(os.environ.get("STEPS", "240"))
HORIZON = 1.0

SPOT, STRIKE, BARRIER = 100.0, 105.0, 78.0
RATE, KAPPA, THETA, XI, RHO = 0.02, 1.8, 0.045, 0.35, -0.6


class Market:
    """The state of all paths at one date."""

    def __init__(self, paths):
        self.log_s = torch.full((paths,), math.log(SPOT))
        self.var = torch.full((paths,), 0.04)
        self.alive = torch.ones(paths, dtype=torch.bool)


def draw_shocks(like):
    z1 = torch.randn_like(like)
    z2 = torch.randn_like(like)
    return z1, RHO * z1 + math.sqrt(1.0 - RHO * RHO) * z2


def advance(log_s, var, alive, z_s, z_v, dt: float):
    v = torch.relu(var)
    vol = torch.sqrt(v * dt)
    log_next = log_s + (RATE - 0.5 * v) * dt + vol * z_s
    var_next = var + KAPPA * (THETA - v) * dt + XI * vol * z_v
    # Brownian-bridge probability that the barrier was touched between dates
    b = math.log(BARRIER)
    gap = (log_s - b) * (log_next - b)
    touched = torch.exp(-2.0 * gap.clamp(min=0) / (v * dt + 1e-8)) > 0.5
    alive = alive & ~touched & (log_next > b)
    return log_next, var_next, alive


advance_c = torch.compile(advance)


def step_market(m, dt):
    z_s, z_v = draw_shocks(m.log_s)
    m.log_s, m.var, m.alive = advance_c(m.log_s, m.var, m.alive, z_s, z_v, dt)


def payoff(m):
    gain = torch.relu(torch.exp(m.log_s) - STRIKE)
    return math.exp(-RATE * HORIZON) * torch.where(m.alive, gain, torch.zeros_like(gain))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(20240611)
    dates = 60
    dt = HORIZON / dates
    prices = []
    m = Market(PATHS)
    started = time.perf_counter()
    with torch.no_grad():
        for step in range(STEPS):
            step_market(m, dt)
            if (step + 1) % dates == 0:
                prices.append(payoff(m).mean().item())
                m = Market(PATHS)
    took = time.perf_counter() - started
    price = sum(prices) / max(1, len(prices))
    print(f"{STEPS} dates, {1e3 * took / STEPS:.2f} ms a date, price {price:.3f} from {len(prices)} runs")


if __name__ == "__main__":
    main()
