"""Gaussian-copula generator of correlated daily rainfall over a set of gauges."""
import os
import math
import time

import torch

torch.manual_seed(11)

GAUGES = 64
DAYS = 3000
STEPS = int(os.environ.get("STEPS", "2000"))
LOG = 100
SQRT2 = math.sqrt(2.0)


def station_correlation():
    xy = torch.rand(GAUGES, 2)
    d = torch.cdist(xy, xy)
    return torch.linalg.cholesky(torch.exp(-d / 0.4) + 1e-3 * torch.eye(GAUGES))


def to_normal_scores(u):
    u = u.clamp(1e-5, 1 - 1e-5)
    return SQRT2 * torch.erfinv(2.0 * u - 1.0)


def dry_spell(z, threshold):
    wet = (z > threshold).float()
    return 1.0 - wet, wet


@torch.compile
def simulate(u, chol, p_wet, scale, shape):
    z = to_normal_scores(u) @ chol.T
    threshold = to_normal_scores(1.0 - p_wet)
    dry, wet = dry_spell(z, threshold)
    amount = scale * torch.exp(shape * (z - threshold)) - scale
    rain = wet * amount.clamp(max=250.0)
    return rain, rain.mean(0), rain.amax(0)


def main():
    chol = station_correlation()
    p_wet = 0.2 + 0.4 * torch.rand(GAUGES)
    scale = 2.0 + 4.0 * torch.rand(GAUGES)
    shape = 0.6 + 0.3 * torch.rand(GAUGES)
    strata = (torch.arange(DAYS)[:, None] + torch.rand(DAYS, GAUGES)) / DAYS
    order = torch.stack([torch.randperm(DAYS) for _ in range(GAUGES)], dim=1)
    base = torch.gather(strata, 0, order)

    record = torch.zeros(GAUGES)
    t0 = time.perf_counter()
    for step in range(1, STEPS + 1):
        u = torch.frac(base + 0.618034 * step)
        rain, mean, peak = simulate(u, chol, p_wet, scale, shape)
        record = torch.maximum(record, peak)
        if step % LOG == 0:
            dt = (time.perf_counter() - t0) / LOG * 1e3
            print(f"year {step} mean {mean.mean():.3f} mm record {record.max():.1f} mm {dt:.3f} ms/step")
            t0 = time.perf_counter()


if __name__ == "__main__":
    main()
