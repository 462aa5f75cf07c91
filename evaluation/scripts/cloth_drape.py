"""A cloth falls on a ball: masses on a grid, held together by springs."""
import argparse
from dataclasses import dataclass

import torch
import torch.nn.functional as F


@dataclass(frozen=True)
class Fabric:
    rest: float = 0.05
    stretch: float = 900.0
    shear: float = 350.0
    drag: float = 0.4
    dt: float = 0.0008


def pull(p, q, rest, strength):
    d = q - p
    length = torch.sqrt((d * d).sum(0, keepdim=True) + 1e-9)
    return strength * (length - rest) * d / length


def along(p, axis, rest, strength):
    if axis == 2:
        f = pull(p[:, :, :-1], p[:, :, 1:], rest, strength)
        return F.pad(f, (0, 1)) - F.pad(f, (1, 0))
    f = pull(p[:, :-1], p[:, 1:], rest, strength)
    return F.pad(f, (0, 0, 0, 1)) - F.pad(f, (0, 0, 1, 0))


def across(p, rest, strength):
    f = pull(p[:, :-1, :-1], p[:, 1:, 1:], rest, strength)
    return F.pad(f, (0, 1, 0, 1)) - F.pad(f, (1, 0, 1, 0))


class Drape:
    def __init__(self, points, fabric):
        self.fabric = fabric
        axis = torch.arange(points) * fabric.rest
        x, y = torch.meshgrid(axis - axis.mean(), axis - axis.mean(), indexing="ij")
        self.place = torch.stack([x, y, torch.full_like(x, 1.2)])
        self.speed = torch.zeros_like(self.place)
        self.ball = torch.tensor([0.0, 0.0, 0.0]).view(3, 1, 1)
        self.gravity = torch.tensor([0.0, 0.0, -9.81]).view(3, 1, 1)
        self.advance = torch.compile(self._advance, fullgraph=True)

    def _advance(self, place, speed):
        fabric = self.fabric
        force = along(place, 1, fabric.rest, fabric.stretch) + along(place, 2, fabric.rest, fabric.stretch)
        force = force + across(place, fabric.rest * 2**0.5, fabric.shear)
        speed = speed + fabric.dt * (force + self.gravity - fabric.drag * speed)
        moved = place + fabric.dt * speed
        away = moved - self.ball
        far = torch.sqrt((away * away).sum(0, keepdim=True) + 1e-9)
        inside = far < 1.0
        moved = torch.where(inside, self.ball + away / far, moved)
        return moved, torch.where(inside, 0.5 * speed, speed)

    def frames(self, count):
        for number in range(count):
            self.place, self.speed = self.advance(self.place, self.speed)
            yield number


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--frames", type=int, default=60000)
    parser.add_argument("--points", type=int, default=256)
    args = parser.parse_args()
    cloth = Drape(args.points, Fabric())
    with torch.no_grad():
        for frame in cloth.frames(args.frames):
            if frame % 5000 == 4999:
                print(f"{frame + 1:6d}  lowest point {cloth.place[2].min():.3f}")
