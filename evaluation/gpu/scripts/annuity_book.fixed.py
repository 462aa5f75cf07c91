"""Revalue a book of simulated annuity cash flows under shocked yield curves."""
import math
import os
import time

import torch

SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
N_PATHS = 64 if SMALL else 8192
N_DATES = 252 * 40 if not SMALL else 512


def sync():
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()


def make_cashflows():
    """Per-path daily payments: a level annuity with noisy lapses."""
    gen = torch.Generator(device=DEVICE).manual_seed(11)
    flows = torch.rand(N_PATHS, N_DATES, device=DEVICE, generator=gen)
    return flows.mul_(0.2).add_(0.9)


def make_curve():
    years = torch.arange(1, N_DATES + 1, device=DEVICE, dtype=torch.float64) / 252.0
    zero = 0.021 + 0.012 * (1.0 - torch.exp(-years / 6.0))
    return years, zero


def discount_factors(years, zero, shift, hazard):
    """Semi-annually compounded discounting times survival, in double."""
    accrual = torch.pow(1.0 + 0.5 * (zero + shift), -2.0 * years)
    survival = torch.exp(-torch.pow(hazard * years, 1.3))
    return accrual * survival


@torch.compile
def present_values(flows, df):
    return (flows * df.to(flows.dtype)).sum(dim=-1)


class RiskAccumulator:
    def __init__(self, n_scenarios):
        self.mean = torch.zeros(n_scenarios, device=DEVICE)
        self.tail = torch.zeros(n_scenarios, device=DEVICE)

    def add(self, i, pv):
        self.mean[i] = pv.mean()
        self.tail[i] = pv.amin()


def main():
    torch.manual_seed(0)
    flows = make_cashflows()
    years, zero = make_curve()
    phase = torch.arange(STEPS, device=DEVICE, dtype=torch.float64)
    shifts = 0.01 * torch.sin(phase * (2 * math.pi / 50))
    hazards = 0.01 + 0.002 * torch.cos(phase * (2 * math.pi / 70))
    acc = RiskAccumulator(STEPS)

    half = STEPS // 2
    start = None
    with torch.no_grad():
        for i in range(STEPS):
            if i == half:
                sync()
                start = time.perf_counter()
            df = discount_factors(years, zero, shifts[i], hazards[i])
            pv = present_values(flows, df)
            acc.add(i, pv)
    sync()
    elapsed = time.perf_counter() - start
    print(f"mean pv {acc.mean.mean().item():.4f}  worst {acc.tail.min().item():.4f}")
    print(f"step_ms={elapsed * 1e3 / max(1, STEPS - half):.3f}")


if __name__ == "__main__":
    main()
