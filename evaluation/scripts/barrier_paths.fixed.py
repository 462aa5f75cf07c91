"""Prices a down-and-out call under a local-vol model by Monte Carlo."""
import math
import os
import time

import torch

STEPS = int(os.environ.get("STEPS", 2400))
PATHS, DATES = 20000, 16
torch.set_num_threads(1)


class LocalVol(torch.nn.Module):
    def __init__(self, base=0.22, skew=-0.35, smile=0.4):
        super().__init__()
        self.register_buffer("base", torch.tensor(base))
        self.register_buffer("skew", torch.tensor(skew))
        self.register_buffer("smile", torch.tensor(smile))

    def forward(self, logm):
        return (self.base * (1 + self.skew * logm + self.smile * logm * logm)).clamp(0.05, 0.8)


class Pricer(torch.nn.Module):
    def __init__(self, strike, barrier, maturity, rate):
        super().__init__()
        self.vol = LocalVol()
        self.strike, self.barrier = strike, math.log(barrier)
        self.dt = maturity / DATES
        self.rate, self.maturity = rate, maturity

    def forward(self, x0, noise):
        x = x0
        alive = torch.ones_like(x)
        for k in range(DATES):
            z = noise[k]
            sigma = self.vol(x)
            x = x + (self.rate - 0.5 * sigma * sigma) * self.dt + sigma * math.sqrt(self.dt) * z
            alive = alive * (x > self.barrier).float()
        payoff = (x.exp() - self.strike).clamp_min(0) * alive
        return math.exp(-self.rate * self.maturity) * payoff


def main():
    torch.manual_seed(5)
    pricer = torch.compile(Pricer(strike=1.0, barrier=0.8, maturity=1.0, rate=0.02))
    x0 = torch.zeros(PATHS)
    total, total_sq, n = 0.0, 0.0, 0
    every = max(1, STEPS // 10)
    t0, s0 = None, 0
    with torch.no_grad():
        for step in range(STEPS):
            if step == 2:
                t0, s0 = time.perf_counter(), step
            pv = pricer(x0, torch.randn(DATES, PATHS))
            total += pv.sum().item()
            total_sq += (pv * pv).sum().item()
            n += PATHS
            if step > 2 and step % every == 0:
                mean = total / n
                err = math.sqrt(max(total_sq / n - mean * mean, 0) / n)
                ms = (time.perf_counter() - t0) / (step - s0) * 1e3
                print(f"batch {step}: price {mean:.5f} +- {err:.6f}  {ms:.3f} ms/step")
                t0, s0 = time.perf_counter(), step


if __name__ == "__main__":
    main()
