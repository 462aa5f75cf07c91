"""Inverse kinematics of many arms with Jacobians from torch.func."""
import argparse

import torch
from torch.func import jacrev, vmap

LINKS = torch.tensor([0.9, 0.7, 0.5, 0.3, 0.2, 0.1])


def tip(angles):
    total = torch.cumsum(angles, 0)
    reach = LINKS * (1.0 + 0.02 * torch.tanh(angles))
    return torch.stack([(reach * torch.cos(total)).sum(), (reach * torch.sin(total)).sum()])


def correction(angles, target):
    miss = target - tip(angles)
    jac = jacrev(tip)(angles)
    return angles + 0.1 * (jac * miss[:, None]).sum(0), miss.square().sum()


solve = torch.compile(vmap(correction))


def targets(count, generator):
    radius = 0.5 + 1.5 * torch.rand(count, generator=generator)
    angle = 6.28 * torch.rand(count, generator=generator)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=29000)
    ap.add_argument("--arms", type=int, default=4096)
    args = ap.parse_args()
    generator = torch.Generator().manual_seed(31)
    angles = 0.1 * torch.randn(args.arms, 6, generator=generator)
    goal = targets(args.arms, generator)
    for step in range(args.steps):
        angles, miss = solve(angles, goal)
        if step % 250 == 0:
            print(f"iteration {step:5d} mean miss {miss.mean().item():.6f}")
            goal = targets(args.arms, generator)


if __name__ == "__main__":
    main()
