"""Relaxation of magnetic domains in a thin film (Landau-Lifshitz with damping)."""
import os
import time

import torch

small = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = int(os.environ.get("STEPS", 20000))
SIDE = 96 if small else 6144
EXCHANGE, ANISOTROPY, DAMPING, DT = 1.0, 0.35, 0.2, 0.04


def neighbours(f):
    return f.roll(1, 0) + f.roll(-1, 0) + f.roll(1, 1) + f.roll(-1, 1) - 4.0 * f


def cross(a, b):
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


@torch.compile
def relax(mx, my, mz, bias):
    m = (mx, my, mz)
    field = tuple(EXCHANGE * neighbours(f) for f in m)
    field = (field[0], field[1], field[2] + ANISOTROPY * mz + bias)
    torque = cross(m, field)
    damp = cross(m, torque)
    new = tuple(f - DT * (t + DAMPING * d) for f, t, d in zip(m, torque, damp))
    scale = torch.rsqrt(new[0] * new[0] + new[1] * new[1] + new[2] * new[2] + 1e-12)
    return new[0] * scale, new[1] * scale, new[2] * scale


@torch.compiler.disable
def report(step, mz, began):
    walls = (mz.abs() < 0.5).float().mean().item()
    print(f"step {step:6d} up {mz.gt(0).float().mean().item():.4f} walls {walls:.4f} "
          f"({time.perf_counter() - began:.1f} s)")


@torch.no_grad()
def main():
    torch.manual_seed(14)
    m = torch.randn(3, SIDE, SIDE, device=device)
    m /= m.norm(dim=0, keepdim=True)
    mx, my, mz = (f.clone() for f in m)
    bias = 0.02 * torch.randn(SIDE, SIDE, device=device)
    began = time.perf_counter()
    for step in range(STEPS):
        mx, my, mz = relax(mx, my, mz, bias)
        if step % 2000 == 0:
            report(step, mz, began)


if __name__ == "__main__":
    main()
