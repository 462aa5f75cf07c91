"""Brownian dynamics of bead-spring polymers in a shear flow, many chains at once."""
import os
import time

import torch

CHAINS, BEADS, DIM = 700, 40, 3
DT, KT, SPRING, SHEAR = 2e-3, 1.0, 60.0, 0.8


def spring_force(x, rest):
    bond = x[:, 1:] - x[:, :-1]
    length = torch.sqrt((bond * bond).sum(-1, keepdim=True) + 1e-9)
    pull = SPRING * (length - rest) / length * bond
    force = torch.zeros_like(x)
    force[:, :-1] += pull
    force[:, 1:] -= pull
    return force


def advance(x, noise, rest, drag):
    flow = torch.zeros_like(x)
    flow[..., 0] = SHEAR * x[..., 1]
    drift = spring_force(x, rest) / drag + flow
    kick = torch.sqrt(2.0 * KT * DT / drag) * noise
    return x + DT * drift + kick


def gyration(x):
    centred = x - x.mean(1, keepdim=True)
    return (centred * centred).sum(-1).mean(1).sqrt()


def main():
    steps = int(os.environ.get("STEPS", "240"))
    torch.manual_seed(77)
    rest = torch.full((1, BEADS - 1, 1), 0.4)
    drag = 1.0 + 0.3 * torch.rand(1, BEADS, 1)
    x = torch.cumsum(0.4 * torch.randn(CHAINS, BEADS, DIM) / 3**0.5, dim=1)

    integrate = torch.compile(advance)
    trace = []
    t0, t_half = time.process_time(), None
    with torch.no_grad():
        for step in range(steps):
            if step == steps // 2:
                t_half = time.process_time()
            x = integrate(x, torch.randn_like(x), rest, drag)
            if step % 40 == 39:
                trace.append(gyration(x).mean())
    now = time.process_time()
    rg = torch.stack(trace) if trace else torch.zeros(1)
    print("radius of gyration:", " ".join(f"{v:.3f}" for v in rg.tolist()))
    print(f"{1e3 * (now - t_half) / (steps - steps // 2):.3f} ms/step, total {now - t0:.1f} s cpu")


if __name__ == "__main__":
    main()
