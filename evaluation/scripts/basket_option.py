"""Price an arithmetic Asian call on a basket under a Heston-type variance."""
import os
import time

import torch

PATHS = 8192
MONTHS = 12


class Market:
    def __init__(self, spot, rate, kappa, theta, xi, rho):
        self.spot = spot
        self.rate = rate
        self.kappa = kappa
        self.theta = theta
        self.xi = xi
        self.rho = rho
        self.rho_bar = (1.0 - rho * rho) ** 0.5


def advance(log_s, var, m, dt):
    z1 = torch.randn_like(log_s)
    z2 = torch.randn_like(log_s)
    vol = torch.sqrt(var.clamp_min(1e-8) * dt)
    z_v = m.rho * z1 + m.rho_bar * z2
    log_s = log_s + (m.rate - 0.5 * var) * dt + vol * z1
    var = var + m.kappa * (m.theta - var) * dt + m.xi * vol * z_v
    return log_s, var.clamp_min(0.0)


def simulate(log_s, var, m, strike):
    dt = 1.0 / MONTHS
    running = torch.zeros_like(log_s)
    for _ in range(MONTHS):
        log_s, var = advance(log_s, var, m, dt)
        running = running + log_s.exp()
    average = running / MONTHS
    payoff = torch.relu(average - strike)
    return payoff.mean(), payoff.square().mean()


def main():
    steps = int(os.environ.get("STEPS", "240"))
    torch.manual_seed(7)
    market = Market(spot=100.0, rate=0.02, kappa=1.5, theta=0.04, xi=0.4, rho=-0.6)
    log_s0 = torch.full((PATHS,), market.spot).log()
    var0 = torch.full((PATHS,), 0.05)
    price_batch = torch.compile(simulate)

    total = torch.zeros(())
    total_sq = torch.zeros(())
    took = []
    with torch.no_grad():
        for _ in range(steps):
            start = time.perf_counter()
            m1, m2 = price_batch(log_s0, var0, market, 100.0)
            total += m1
            total_sq += m2
            took.append(time.perf_counter() - start)

    discount = torch.exp(torch.tensor(-market.rate))
    mean = total / steps
    stderr = ((total_sq / steps - mean**2) / (steps * PATHS)).sqrt()
    took.sort()
    print(f"price {float(discount * mean):.4f} +- {float(discount * stderr):.4f}")
    print(f"{took[len(took) // 2] * 1e3:.2f} ms per batch of {PATHS} paths")


if __name__ == "__main__":
    main()
