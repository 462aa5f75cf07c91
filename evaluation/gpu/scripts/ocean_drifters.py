"""Advects drifters in an analytic current; the calibration comes from numpy."""
import argparse

import numpy as np
import torch

DEVICE = torch.device("cuda")


def calibration(modes):
    """Amplitudes, wave numbers and phases of the current, as published."""
    rng = np.random.default_rng(9)
    table = rng.normal(size=(modes, 3)) * np.array([0.3, 1.0, 3.14])
    return torch.from_numpy(table).to(DEVICE)


class Current:
    def __init__(self, modes=12):
        self.amplitude, self.number, self.phase = calibration(modes).unbind(1)

    def __call__(self, x, y):
        u = torch.zeros_like(x)
        v = torch.zeros_like(y)
        for i in range(len(self.amplitude)):
            a, k, p = self.amplitude[i:i + 1], self.number[i:i + 1], self.phase[i:i + 1]
            u = u + a * torch.sin(k * y + p) * torch.cos(k * x)
            v = v - a * torch.cos(k * y + p) * torch.sin(k * x)
        return u, v


current = Current()


@torch.compile
def advect(x, y, dt: float):
    u1, v1 = current(x, y)
    u2, v2 = current(x + 0.5 * dt * u1, y + 0.5 * dt * v1)
    return torch.remainder(x + dt * u2, 6.2831853).float(), torch.remainder(y + dt * v2, 6.2831853).float()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=5000)
    ap.add_argument("--drifters", type=int, default=4_000_000)
    args = ap.parse_args()
    torch.manual_seed(9)
    x = torch.rand(args.drifters, device=DEVICE) * 6.28
    y = torch.rand(args.drifters, device=DEVICE) * 6.28
    for step in range(args.steps):
        x, y = advect(x, y, 0.01)
        if step % 1000 == 0:
            print(f"hour {step:5d} centre {x.mean().item():.4f} {y.mean().item():.4f}")


if __name__ == "__main__":
    main()
