"""Monte-Carlo value of a basket option with stochastic volatility."""
import os
import time

import torch

STEPS = int(os.environ.get("STEPS", "12000"))


@torch.compile
def advance(price, var, z1, z2):
    sq = torch.sqrt(var.clamp_min(1e-6))
    z = 0.7 * z1 + 0.714 * z2
    price = price * torch.exp((0.02 - 0.5 * var) * 0.01 + sq * 0.1 * z1)
    var = var + 1.5 * (0.04 - var) * 0.01 + 0.3 * sq * 0.1 * z
    return price, var.abs()


def main():
    torch.manual_seed(20)
    torch.set_num_threads(1)
    n = 150_000
    price, var = torch.full((n,), 100.0), torch.full((n,), 0.04)
    z1, z2 = torch.randn(8, n), torch.randn(8, n)
    t0 = time.perf_counter()
    for step in range(STEPS):
        if step % 100 == 0:
            price, var = torch.full((n,), 100.0), torch.full((n,), 0.04)
        price, var = advance(price, var, z1[step % 8], z2[(step * 3) % 8])
        if (step + 1) % 100 == 0:
            value = torch.relu(price - 100).mean()
            t1 = time.perf_counter()
            print(f"path {step // 100} value {value:.3f} {(t1 - t0) / 100 * 1e3:.2f} ms/step", flush=True)
            t0 = t1


if __name__ == "__main__":
    main()
