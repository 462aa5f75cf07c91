"""Per-lens gradient descent of a radial distortion profile against traced rays."""
import os
import time

import torch

torch.manual_seed(2)

LENSES = 96
RAYS = 256
COEFS = 6
STEPS = int(os.environ.get("STEPS", "7000"))
LOG = 250


def trace(coef, r):
    """Image height of rays at radius r for one lens."""
    out = r
    power = r
    for k in range(COEFS):
        power = power * r * r
        out = out + coef[k] * power / (1.0 + 0.1 * power)
    bend = torch.asinh(out) + 0.2 * torch.sin(out) * torch.exp(-r * r)
    return bend - 0.05 * torch.atan(out * coef[0])


def residual(coef, r, target):
    miss = trace(coef, r) - target
    huber = torch.where(miss.abs() < 0.01, 50.0 * miss * miss, miss.abs() - 0.005)
    stiff = 1e-3 * torch.log1p(coef * coef).sum()
    return huber.mean() + stiff


def main():
    r = torch.rand(LENSES, RAYS) * 1.2
    truth = 0.2 * torch.randn(LENSES, COEFS)
    target = torch.vmap(trace)(truth, r)
    coef = torch.zeros(LENSES, COEFS)
    velocity = torch.zeros_like(coef)

    fit = torch.compile(torch.vmap(torch.func.grad_and_value(residual)))
    t0 = time.perf_counter()
    for step in range(1, STEPS + 1):
        grad, loss = fit(coef, r, target)
        velocity = 0.9 * velocity - 0.02 * grad
        coef = coef + velocity
        if step % LOG == 0:
            dt = (time.perf_counter() - t0) / LOG * 1e3
            print(f"iter {step} worst {loss.max().item():.5f} mean {loss.mean().item():.5f} {dt:.3f} ms/step")
            t0 = time.perf_counter()


if __name__ == "__main__":
    main()
