"""Folds a sheet of creases by following hinge angles, crease by crease."""
import argparse
import math

import torch


@torch.compile
def rotate(points, axis, angle):
    """Rodrigues rotation of a few points about one crease."""
    axis = axis / axis.norm()
    c, s = torch.cos(angle), torch.sin(angle)
    cross = torch.linalg.cross(axis.expand_as(points), points)
    along = (points * axis).sum(-1, keepdim=True) * axis
    return points * c + cross * s + along * (1 - c)


class Sheet:
    def __init__(self, creases, seed):
        g = torch.Generator().manual_seed(seed)
        self.axes = torch.randn(creases, 3, generator=g)
        self.panels = torch.randn(creases, 4, 3, generator=g)
        self.speed = torch.rand(creases, generator=g)

    def fold(self, t):
        folded = []
        for axis, panel, speed in zip(self.axes, self.panels, self.speed):
            folded.append(rotate(panel, axis, speed * math.sin(t)))
        return torch.stack(folded)


def strain(panels):
    edges = panels - panels.roll(1, dims=1)
    return edges.norm(dim=-1).std()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=3700)
    ap.add_argument("--creases", type=int, default=120)
    args = ap.parse_args()
    sheet = Sheet(args.creases, seed=30)
    worst = torch.zeros(())
    for step in range(args.steps):
        panels = sheet.fold(step * 0.01)
        worst = torch.maximum(worst, strain(panels))
        if step % 100 == 0:
            print(f"frame {step:5d} strain {worst.item():.5f}")


if __name__ == "__main__":
    main()
