"""A struck membrane with a stiff nonlinearity, integrated in time."""
import argparse

import torch


@torch.compile
def restoring(u):
    return u * (1.0 + 0.3 * u * u) + 0.05 * torch.sin(3.0 * u)


@torch.compile
def laplacian(u):
    inner = -4.0 * u[1:-1, 1:-1] + u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    return torch.nn.functional.pad(inner, (1, 1, 1, 1))


@torch.compile
def kick(u, v, damping):
    force = 0.2 * laplacian(u) - 0.01 * restoring(u) - damping * v
    v = v + force
    return u + v, v


@torch.compile
def loudness(u, v):
    return (0.5 * v * v + 0.005 * u * u).sum()


def strike(side):
    y = torch.linspace(-1, 1, side)
    r2 = (y[:, None] - 0.2) ** 2 + (y[None, :] + 0.1) ** 2
    return torch.exp(-60 * r2)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=45000)
    ap.add_argument("--side", type=int, default=400)
    args = ap.parse_args()
    torch.manual_seed(0)
    u = strike(args.side)
    v = torch.zeros_like(u)
    damping = torch.full_like(u, 2e-3)
    trace = []
    for step in range(args.steps):
        u, v = kick(u, v, damping)
        if step % 20 == 0:
            trace.append(loudness(u, v).item())
        if step % 1000 == 0:
            print(f"{step:6d} loudness {trace[-1]:.5f}")
    print("samples", len(trace), "peak", max(trace))


if __name__ == "__main__":
    main()
