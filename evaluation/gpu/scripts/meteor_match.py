"""Matches meteor candidates seen by two cameras; the number of candidates changes."""
import argparse
import random
from functools import partial

import torch

DEVICE = "cuda"
jit = partial(torch.compile, dynamic=False)


class geometry:
    """Small helpers, usable from anywhere."""

    @staticmethod
    def directions(az, el):
        return torch.stack([el.cos() * az.cos(), el.cos() * az.sin(), el.sin()], -1)

    @staticmethod
    def keep_bright(points, flux, limit):
        bright = flux > limit
        return points[bright], flux[bright]


@jit
def match(left, right, flux_l, flux_r):
    a, fa = geometry.keep_bright(geometry.directions(left[:, 0], left[:, 1]), flux_l, 0.1)
    b, fb = geometry.keep_bright(geometry.directions(right[:, 0], right[:, 1]), flux_r, 0.1)
    angle = torch.acos((a @ b.T).clamp(-0.9999, 0.9999))
    colour = (fa[:, None].log() - fb[None, :].log()).abs()
    cost = torch.tanh(angle * 5.0) + 0.3 * torch.sqrt(colour + 1e-3) + 0.01 * torch.sin(angle)
    return cost.amin(1).mean(), cost.amin(0).mean()


def frame(rng, g):
    n, m = rng.randint(400, 2000), rng.randint(400, 2000)
    make = lambda k: (torch.rand(k, 2, device=DEVICE, generator=g), torch.rand(k, device=DEVICE, generator=g))
    (left, fl), (right, fr) = make(n), make(m)
    return left, right, fl, fr


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=4000)
    args = ap.parse_args()
    rng = random.Random(16)
    g = torch.Generator(device=DEVICE).manual_seed(16)
    total = torch.zeros((), device=DEVICE)
    for step in range(args.steps):
        one, two = match(*frame(rng, g))
        total += one + two
        if step % 500 == 0:
            print(f"frame {step:5d} cost {total.item() / (step + 1):.5f}")


if __name__ == "__main__":
    main()
