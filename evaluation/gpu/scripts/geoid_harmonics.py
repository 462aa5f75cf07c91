"""Recursive estimation of zonal gravity coefficients from simulated gradiometer arcs.

Every pass takes the sine of the geocentric latitude of a few million footprints, evaluates the
Legendre table up to DEGREE, predicts the potential anomaly and nudges the coefficient vector
towards the measured one.
"""
import os
import math
import time

import torch

device = "cuda"

DEGREE = 36
FOOTPRINTS = 4_000_000
PASSES = int(os.environ.get("STEPS", "4500"))
REPORT_EVERY = 900
GAIN = 0.6


def true_coefficients(generator):
    k = torch.arange(DEGREE, dtype=torch.float32)
    c = torch.randn(DEGREE, generator=generator) * 1.0e-2 / (1.0 + k) ** 1.2
    c[0] = 1.0
    c[2] = -0.48
    return c.to(device)


def ground_track(n, generator):
    """Sine of latitude along a handful of inclined orbits, with a little attitude jitter."""
    u = torch.linspace(0.0, 57.0 * math.pi, n)
    inclination = torch.randint(30, 89, (n,), generator=generator).float() * (math.pi / 180)
    s = torch.sin(inclination) * torch.sin(u + 0.01 * torch.randn(n, generator=generator))
    return s.clamp(-0.999, 0.999).to(device)


def legendre_table(s):
    """P_k(s), k = 0 .. DEGREE - 1, one row for each degree (Bonnet's recursion)."""
    table = torch.empty(DEGREE, s.numel(), device=s.device)
    table[0] = 1.0
    table[1] = s
    for k in range(2, DEGREE):
        table[k] = ((2 * k - 1) * s * table[k - 1] - (k - 1) * table[k - 2]) / k
    return table


def assimilate(coef, s, anomaly, weight):
    """One pass of the normalised LMS filter; returns the new coefficients and the misfit."""
    table = legendre_table(s)
    predicted = coef @ table
    residual = (anomaly - predicted) * weight
    degree = torch.arange(DEGREE, device=s.device, dtype=torch.float32)
    step = GAIN * (2.0 * degree + 1.0) * (table @ residual) / s.numel()
    return coef + step, residual.square().mean()


def precess(s, shift):
    """Drift of the ground track between two passes."""
    return torch.sin(torch.asin(s) + shift).clamp(-0.999, 0.999)


def measure(coef, s, noise):
    """Clenshaw summation of the reference field, chunk by chunk, done once for each arc."""
    out = torch.empty_like(s)
    for part, dest, eps in zip(s.split(500_000), out.split(500_000), noise.split(500_000)):
        b1 = torch.zeros_like(part)
        b2 = torch.zeros_like(part)
        for k in range(DEGREE - 1, 0, -1):
            b1, b2 = coef[k] + (2 * k + 1) / (k + 1) * part * b1 - (k + 1) / (k + 2) * b2, b1
        dest.copy_(coef[0] + part * b1 - 0.5 * b2 + eps)
    return out


def main():
    gen = torch.Generator().manual_seed(1977)
    truth = true_coefficients(gen)
    arcs = []
    base = ground_track(FOOTPRINTS, gen)
    for a in range(4):
        s = precess(base, 0.003 * a)
        noise = 1.0e-4 * torch.randn(FOOTPRINTS, generator=gen).to(device)
        arcs.append((s, measure(truth, s, noise)))
    weight = torch.full((FOOTPRINTS,), 0.9, device=device)

    update = torch.compile(assimilate)
    coef = torch.zeros(DEGREE, device=device)
    for s, anomaly in arcs:
        coef, misfit = update(coef, s, anomaly, weight)
    torch.cuda.synchronize()

    started = time.perf_counter()
    for n in range(PASSES):
        s, anomaly = arcs[n % len(arcs)]
        coef, misfit = update(coef, s, anomaly, weight)
        if (n + 1) % REPORT_EVERY == 0:
            error = (coef - truth).abs().max().item()
            elapsed = time.perf_counter() - started
            print(f"pass {n + 1:5d}  misfit {misfit.item():.3e}  max |dC| {error:.3e}  "
                  f"{1e3 * elapsed / (n + 1):.2f} ms/pass")
    torch.cuda.synchronize()
    print("J2 estimate", coef[2].item())


if __name__ == "__main__":
    with torch.no_grad():
        main()
