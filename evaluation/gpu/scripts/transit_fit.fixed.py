"""Refine eclipse parameters over a queue of photometric light curves."""
import os
import time

import torch

SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
CADENCES = (3_000, 6_000) if SMALL else (180_000, 320_000)
ITERS_PER_CURVE = 5


def sync():
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()


def load_curve(gen):
    """One star: timestamps in days, normalised flux; length differs per star."""
    n = int(torch.randint(*CADENCES, (1,), generator=gen))
    t = torch.linspace(-1.0, 1.0, n)
    centre = 0.1 * float(torch.randn((), generator=gen))
    flux = 1.0 - 0.02 * torch.exp(-(((t - centre) / 0.08) ** 2))
    flux += 0.003 * torch.randn(n, generator=gen)
    return t.to(DEVICE), flux.to(DEVICE)


@torch.compile(dynamic=True)
def robust_gradient(t, flux, theta):
    """Huber-weighted chi2 and its derivative for (depth, centre, width, base)."""
    depth, centre, width, base = theta.unbind()
    z = (t - centre) / width
    dip = torch.exp(-z * z)
    resid = (base - depth * dip) - flux
    scaled = resid / 0.003
    weight = torch.clamp(1.5 / (scaled.abs() + 1e-6), max=1.0)
    wr = weight * resid
    slope = 2.0 * depth * dip * z / width
    chi2 = (wr * resid).sum()
    g_depth = -(wr * dip).sum()
    g_centre = -(wr * slope).sum()
    g_width = -(wr * slope * z).sum()
    g_base = wr.sum()
    return chi2, torch.stack([g_depth, g_centre, g_width, g_base])


def refine(t, flux, theta, rate):
    chi2, grad = robust_gradient(t, flux, theta)
    return theta - rate * grad / t.shape[0], chi2


def main():
    gen = torch.Generator().manual_seed(5)
    theta0 = torch.tensor([0.015, 0.0, 0.1, 1.0], device=DEVICE)
    rate = torch.tensor([0.5, 0.2, 0.2, 0.5], device=DEVICE)
    curves = [load_curve(gen) for _ in range(20)]

    # build before the queue starts
    t, flux = curves[0]
    refine(t, flux, theta0, rate)

    half = STEPS // 2
    total = torch.zeros((), device=DEVICE)
    theta = theta0
    start = None
    for i in range(STEPS):
        if i == half:
            sync()
            start = time.perf_counter()
        if i % ITERS_PER_CURVE == 0:
            t, flux = curves[(i // ITERS_PER_CURVE) % len(curves)]
            theta = theta0
        theta, chi2 = refine(t, flux, theta, rate)
        total += chi2
    sync()
    elapsed = time.perf_counter() - start
    print(f"chi2 sum {total.item():.4f}  last depth {theta[0].item():.5f}")
    print(f"step_ms={elapsed * 1e3 / max(1, STEPS - half):.3f}")


if __name__ == "__main__":
    main()
