"""Grid search of Gaussian-process kernel hyperparameters by marginal likelihood."""
import math
import os
import time

import torch

device = "cuda"
STEPS = int(os.environ.get("STEPS", "1200"))
POINTS = 8192


def kernel(d2, length, amp, jitter):
    return amp * torch.exp(d2 * (-0.5 / (length * length))) + jitter


@torch.compile
def log_evidence(d2, y, length, amp, jitter):
    chol = torch.linalg.cholesky(kernel(d2, length, amp, jitter))
    alpha = torch.cholesky_solve(y, chol)
    fit = -0.5 * (y * alpha).sum()
    return fit - chol.diagonal().log().sum() - 0.5 * y.shape[0] * math.log(2 * math.pi)


@torch.no_grad()
def main():
    torch.manual_seed(25)
    x = torch.rand(POINTS, 3, device=device)
    y = torch.sin(8 * x.sum(1, keepdim=True)) + 0.1 * torch.randn(POINTS, 1, device=device)
    sq = x.square().sum(1)
    d2 = (sq[:, None] + sq[None, :] - 2 * x @ x.T).clamp_min(0)
    lengths = torch.linspace(0.1, 1.0, 30, device=device)
    amps = torch.linspace(0.5, 3.0, 20, device=device)
    jitter = 0.05 * torch.eye(POINTS, device=device)
    best = torch.tensor(-math.inf, device=device)
    for i in range(2):
        log_evidence(d2, y, lengths[i], amps[i], jitter)
    torch.cuda.synchronize()
    t0 = time.perf_counter()
    last = 0
    for step in range(1, STEPS + 1):
        value = log_evidence(d2, y, lengths[step % 30], amps[step // 30 % 20], jitter)
        best = torch.maximum(best, value)
        if step % 100 == 0 or step == STEPS:
            torch.cuda.synchronize()
            t1 = time.perf_counter()
            ms = 1000 * (t1 - t0) / (step - last)
            print(f"{step:5d} settings  best evidence {best.item():.2f}  {ms:.3f} ms/step", flush=True)
            t0, last = t1, step


if __name__ == "__main__":
    main()
