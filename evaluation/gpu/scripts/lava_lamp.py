"""Reaction-diffusion on the GPU with reaction rates read from a laboratory table."""
import argparse

import numpy as np
import torch

DEVICE = torch.device("cuda")


class Rates:
    """Rates over temperature, from the laboratory's own fit."""

    def __init__(self):
        grid = np.linspace(0.0, 1.0, 1024)
        self.feed = torch.as_tensor(0.03 + 0.02 * grid, device=DEVICE)
        self.kill = torch.as_tensor(0.055 + 0.01 * np.sqrt(grid), device=DEVICE)


def spread(field):
    return (torch.roll(field, 1, -1) + torch.roll(field, -1, -1)
            + torch.roll(field, 1, -2) + torch.roll(field, -1, -2) - 4 * field)


@torch.compile
def react(a, b, feed, kill):
    meet = a * b * b
    glow = torch.exp(-b * 3.0) * torch.sin(a * 2.0) * 1e-3
    new_a = a + 0.2 * spread(a) - meet + feed * (1 - a) + glow
    new_b = b + 0.1 * spread(b) + meet - (kill + feed) * b
    return new_a.clamp(0, 1), new_b.clamp(0, 1)


class Camera:
    def __init__(self):
        self.contrast = []

    def shoot(self, b):
        picture = b.cpu()
        self.contrast.append(float(picture.max() - picture.min()))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=3000)
    args = ap.parse_args()
    torch.manual_seed(17)
    rates, camera = Rates(), Camera()
    a = torch.ones(8, 1024, 1024, device=DEVICE)
    b = (torch.rand(8, 1024, 1024, device=DEVICE) > 0.97).float()
    for step in range(args.steps):
        a, b = react(a, b, rates.feed, rates.kill)
        camera.shoot(b)
        if step % 500 == 0:
            print(f"step {step:5d} contrast {camera.contrast[-1]:.4f} mean {a.mean().item():.4f}")


if __name__ == "__main__":
    main()
