"""Kriging of borehole data: the covariance gets a little nugget each round, a few rows are predicted."""
import os
import time

import torch

STEPS = int(os.environ.get("STEPS", "20000"))
N = 1600


def round_(cov, weights, rows, nugget):
    cov.diagonal().add_(nugget)
    part = cov[rows]
    pred = part @ weights
    spread = torch.sqrt(part.square().mean(1) + 1e-6)
    return torch.tanh(pred / spread)


def main():
    torch.manual_seed(3)
    torch.set_num_threads(1)
    step_fn = torch.compile(round_)
    x = torch.rand(N, 2)
    cov = torch.exp(-torch.cdist(x, x) * 4)
    weights = torch.randn(N) * 0.01
    nugget = torch.full((N,), 1e-5)
    t0 = time.perf_counter()
    for step in range(STEPS):
        rows = torch.randint(0, N, (400,))
        pred = step_fn(cov, weights, rows, nugget)
        weights[rows] -= 0.001 * pred
        if (step + 1) % 100 == 0:
            t1 = time.perf_counter()
            print(f"round {step + 1} mean {pred.mean():.4f} {(t1 - t0) / 100 * 1e3:.2f} ms/step", flush=True)
            t0 = t1


if __name__ == "__main__":
    main()
