"""Iterative shrinkage on a batch of signals."""
import os
import time
from contextlib import contextmanager

import torch
import torch.nn.functional as F

ROUNDS = int(os.environ.get("ROUNDS", 75000))


@contextmanager
def stopwatch(title):
    start = time.perf_counter()
    yield
    print(f"{title}: {time.perf_counter() - start:.1f} s")


def soft(x, threshold):
    return torch.sign(x) * F.relu(x.abs() - threshold)


@torch.compile(fullgraph=True)
def shrink(signal, estimate, kernel):
    residual = signal - (estimate * kernel + torch.roll(estimate, 1, -1) * (1 - kernel))
    step = estimate + 0.2 * (residual * kernel + torch.roll(residual, -1, -1) * (1 - kernel))
    low = 0.5 * (step + torch.roll(step, 2, -1))
    high = 0.5 * (step - torch.roll(step, 2, -1))
    return soft(low, 0.001) + soft(torch.tanh(high), 0.01)


@torch.no_grad()
def main():
    torch.manual_seed(0)
    signal = torch.sin(torch.linspace(0, 60, 2048)).repeat(32, 1) + 0.2 * torch.randn(32, 2048)
    estimate, kernel = torch.zeros_like(signal), torch.full((2048,), 0.7)
    estimate = shrink(signal, estimate, kernel)
    with stopwatch(f"{ROUNDS} rounds"):
        for _ in range(ROUNDS):
            estimate = shrink(signal, estimate, kernel)
    print("kept energy", estimate.square().mean().item())


if __name__ == "__main__":
    main()
