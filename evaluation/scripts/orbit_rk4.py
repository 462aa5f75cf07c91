"""Integrate many Lorenz systems side by side with a classical Runge-Kutta scheme."""
import argparse
from functools import partial

import torch


def lorenz(state, sigma=10.0, rho=28.0, beta=8.0 / 3.0):
    x, y, z = state
    return torch.stack((sigma * (y - x), x * (rho - z) - y, x * y - beta * z))


def rk4(field, state, dt):
    k1 = field(state)
    k2 = field(state + 0.5 * dt * k1)
    k3 = field(state + 0.5 * dt * k2)
    k4 = field(state + dt * k3)
    return state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


@torch.compile
def advance(state):
    for _ in range(2):
        state = rk4(partial(lorenz, rho=27.5), state, 0.005)
    return state


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--iters", type=int, default=180000)
    ap.add_argument("--systems", type=int, default=8192)
    ns = ap.parse_args()
    state = torch.randn(3, ns.systems, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        for _ in range(ns.iters):
            state = advance(state)
    print("mean radius", state.norm(dim=0).mean().item())


if __name__ == "__main__":
    main()
