"""Zonal gravity synthesis: scattered ground points against a batch of candidate degree-variance models."""
import os
import time

import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))

POINTS = 4096 if SMALL else 2_000_000
DEGREE = 12 if SMALL else 40
MODELS = 16
GM_OVER_R = 6.2637e7


def legendre(x, degree):
    basis = torch.ones(degree, x.shape[0], device=x.device)
    basis[1] = x
    for n in range(2, degree):
        basis[n] = ((2 * n - 1) * x * basis[n - 1] - (n - 1) * basis[n - 2]) / n
    return basis


@torch.compile
def anomaly(sin_lat, coeffs):
    basis = legendre(sin_lat, DEGREE)
    return coeffs @ basis


@torch.compile
def misfit(pred, observed, sigma):
    resid = (pred - observed) / sigma
    return (resid * resid).clamp(max=25.0).mean(dim=1)


def sync():
    if device.type == "cuda":
        torch.cuda.synchronize()


@torch.no_grad()
def main():
    gen = torch.Generator(device=device).manual_seed(5)
    lat = (torch.rand(POINTS, device=device, generator=gen) * 2 - 1) * 1.4
    n = torch.arange(DEGREE, device=device, dtype=torch.float32)
    decay = 1.0 / (1.0 + n) ** 2
    truth = torch.randn(1, DEGREE, device=device, generator=gen) * decay
    observed = anomaly(torch.sin(lat), truth.expand(MODELS, -1).contiguous())[0]
    observed = observed + 0.02 * torch.randn(POINTS, device=device, generator=gen)
    sigma = torch.full((POINTS,), 0.05, device=device)

    centre = torch.zeros(1, DEGREE, device=device)
    spread = 0.5 * decay
    half = STEPS // 2
    t0 = None
    for step in range(STEPS):
        if step == half:
            sync()
            t0 = time.perf_counter()
        cand = centre + spread * torch.randn(MODELS, DEGREE, device=device, generator=gen)
        shift = 1e-4 * torch.randn((), device=device, generator=gen)
        cost = misfit(anomaly(torch.sin(lat + shift), cand), observed, sigma)
        weight = torch.softmax(-2.0 * cost, dim=0)
        centre = 0.7 * centre + 0.3 * (weight[:, None] * cand).sum(dim=0, keepdim=True)
        spread = spread * 0.995
    sync()
    ms = (time.perf_counter() - t0) * 1e3 / (STEPS - half)
    err = (centre - truth).abs().max().item()
    print(f"coef_err={err:.4f} cost={cost.min().item():.4f} scale={GM_OVER_R * err:.3e}")
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()
