"""Warped Gaussian process for ore grade along a borehole field.

Depth enters through a Kumaraswamy warp whose two shape parameters are re-sampled at every step of a
random-walk Metropolis chain; each step predicts four assays (Cu, Au, Ag, Mo) at all query depths.
"""
import os
import time

import torch

SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.set_default_dtype(torch.float64)

QUERY = 256 if SMALL else 8192
TRAIN = 320 if SMALL else 8192
ASSAYS = 4


@torch.compile
def warp(depth, a, b):
    return 1.0 - (1.0 - depth**a) ** b


@torch.compile
def predict(u, v, scale, alpha):
    d = (u[:, None] - v[None, :]) * scale
    k = torch.exp(-0.5 * d * d)
    return k @ alpha


@torch.compile
def score(pred, assay_mean):
    err = pred - assay_mean
    return (err * err).mean(), err.abs().amax()


def main():
    torch.manual_seed(11)
    query = torch.rand(QUERY, device=device) * 0.98 + 0.01
    train = torch.rand(TRAIN, device=device) * 0.98 + 0.01
    alpha = torch.randn(TRAIN, ASSAYS, device=device) / TRAIN**0.5
    assay_mean = torch.randn(ASSAYS, device=device) * 0.1
    shape = torch.tensor([1.4, 2.2], device=device)
    scale = torch.tensor(18.0, device=device)
    best = torch.full((), float("inf"), device=device)
    worst = torch.zeros((), device=device)
    mark = STEPS // 2
    with torch.no_grad():
        for step in range(STEPS):
            if step == mark:
                if device.type == "cuda":
                    torch.cuda.synchronize()
                t0 = time.perf_counter()
            trial = (shape + 0.02 * torch.randn(2, device=device)).clamp(0.5, 4.0)
            a, b = trial.unbind(0)
            pred = predict(warp(query, a, b), warp(train, a, b), scale, alpha)
            mse, peak = score(pred, assay_mean)
            better = mse < best
            shape = torch.where(better, trial, shape)
            best = torch.where(better, mse, best)
            worst = torch.maximum(worst, peak)
    if device.type == "cuda":
        torch.cuda.synchronize()
    dt = (time.perf_counter() - t0) / (STEPS - mark)
    print(f"best mse {best.item():.5f}  shape {shape.tolist()}  worst {worst.item():.3f}")
    print(f"step_ms={dt * 1e3:.3f}")


if __name__ == "__main__":
    main()
