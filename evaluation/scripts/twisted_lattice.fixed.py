"""Nonlinear phase lattice: a field of complex amplitudes with self-modulation."""
import os
import time
import torch

torch.manual_seed(13)

N = 700
STEPS = 120
STEPS = int(os.environ.get("STEPS", STEPS))


def drive(z, link, g):
    a, b = torch.view_as_real(z).unbind(-1)
    c, d = torch.view_as_real(link).unbind(-1)
    mod = a * a + b * b
    a, b = a * c - b * d, a * d + b * c
    s, t = torch.cos(g * mod), -torch.sin(g * mod)
    a, b = a * s - b * t, a * t + b * s
    a, b = a + 0.02 * (a * c + b * d), b + 0.02 * (a * d - b * c)
    r = torch.rsqrt(1.0 + 0.1 * mod)
    a, b = a * r, b * r
    a, b = a * c + b * d, b * c - a * d
    return torch.view_as_complex(torch.stack([a, b], dim=-1))


def coherence(z):
    return (z.mean().abs() / z.abs().mean()).item()


def main():
    step = torch.compile(drive)
    ang = torch.rand(N, N) * 0.2
    link = torch.polar(torch.ones(N, N), ang)
    z = torch.complex(torch.randn(N, N), torch.randn(N, N))
    laps = []
    for k in range(STEPS):
        t0 = time.perf_counter()
        z = step(z, link, 0.1)
        laps.append(time.perf_counter() - t0)
        if k % 25 == 0:
            print(f"step {k:4d} coherence {coherence(z):.4f}")
    laps = sorted(laps[STEPS // 2:])
    print(f"coherence at end {coherence(z):.4f}")
    print(f"median step {laps[len(laps) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
