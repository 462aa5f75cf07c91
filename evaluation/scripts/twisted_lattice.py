"""Nonlinear phase lattice: a field of complex amplitudes with self-modulation."""
import os
import time
import torch

torch.manual_seed(13)

N = 700
STEPS = 120
STEPS = int(os.environ.get("STEPS", STEPS))


def drive(z, link, g):
    mod = z.real * z.real + z.imag * z.imag
    z = z * link
    z = z * torch.exp(-1j * g * mod)
    z = z + 0.02 * z.conj() * link
    z = z / torch.sqrt(1.0 + 0.1 * mod)
    return z * link.conj()


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
