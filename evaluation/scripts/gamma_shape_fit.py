"""Robust per-SKU gamma fit of delivery times (method: clipped natural-gradient ascent on the shapes)."""
import os
import time

import torch

STEPS = int(os.environ.get("STEPS", 1600))
ROWS, SKUS = 3000, 400

torch.manual_seed(11)
torch.set_num_threads(1)


def sample_log_times():
    shape = torch.rand(SKUS) * 4 + 1.0
    rate = torch.rand(SKUS) + 0.5
    times = torch.distributions.Gamma(shape, rate).sample((ROWS,))
    return times.clamp_min(1e-6).log(), rate


class GammaShapes:
    def __init__(self, log_rate):
        self.log_rate = log_rate
        self.shape = torch.full((SKUS,), 2.0)
        self.weight = torch.ones(ROWS, 1)


@torch.compile
def clipped_score(log_x, log_rate, shape, weight):
    expected = torch.digamma(shape) - log_rate
    resid = log_x - expected
    score = torch.clamp(resid, -2.5, 2.5)
    lo = (resid < -2.5).float()
    hi = (resid > 2.5).float()
    return (weight * score).mean(0), lo.mean(0), hi.mean(0)


def main():
    log_x, rate = sample_log_times()
    state = GammaShapes(rate.log())
    every = max(1, STEPS // 10)
    tick = None
    with torch.no_grad():
        for step in range(STEPS):
            if step == 2:
                tick, seen = time.perf_counter(), step
            score, lo, hi = clipped_score(log_x, state.log_rate, state.shape, state.weight)
            state.shape = (state.shape + 0.05 * score).clamp(0.2, 20.0)
            if step > 2 and step % every == 0:
                now = time.perf_counter()
                ms = (now - tick) / (step - seen) * 1e3
                print(f"step {step}: |score| {score.abs().mean():.5f}  outliers {(lo + hi).mean():.4f}  {ms:.3f} ms/step")
                tick, seen = time.perf_counter(), step
    print("mean shape", state.shape.mean().item())


if __name__ == "__main__":
    main()
