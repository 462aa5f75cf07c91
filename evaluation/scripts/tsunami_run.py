"""Shallow water over a sea floor: a wave runs up a bay, with a time step taken from the fastest wave."""
import argparse
import math

import torch

GRAVITY = 9.81


def slope_x(f):
    return 0.5 * (torch.roll(f, -1, 1) - torch.roll(f, 1, 1))


def slope_y(f):
    return 0.5 * (torch.roll(f, -1, 0) - torch.roll(f, 1, 0))


class Bay:
    def __init__(self, side, spacing):
        rows = torch.linspace(-1, 1, side)
        self.floor = 40 + 30 * torch.tanh(3 * rows).unsqueeze(1) * torch.ones(side)
        hill = torch.exp(-30 * (rows.unsqueeze(1) ** 2 + (rows - 0.4) ** 2))
        self.level = 2.0 * hill
        self.u = torch.zeros(side, side)
        self.v = torch.zeros(side, side)
        self.spacing = spacing

    def largest_step(self, courant=0.3):
        fastest = math.sqrt(GRAVITY * float((self.floor + self.level).max())) + float(self.u.abs().max())
        return courant * self.spacing / fastest


def advance(level, u, v, floor, spacing, dt):
    depth = floor + level
    drag = 0.003 * torch.sqrt(u * u + v * v + 1e-6) / depth
    du = -GRAVITY * slope_x(level) / spacing - u * slope_x(u) / spacing - v * slope_y(u) / spacing - drag * u
    dv = -GRAVITY * slope_y(level) / spacing - u * slope_x(v) / spacing - v * slope_y(v) / spacing - drag * v
    u = torch.add(u, du, alpha=dt)
    v = torch.add(v, dv, alpha=dt)
    flow = slope_x(depth * u) / spacing + slope_y(depth * v) / spacing
    level = torch.add(level, flow, alpha=-dt)
    if (floor + level).min() < 0.1:
        level = torch.maximum(level, 0.1 - floor)
    return level, u, v


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=12000)
    parser.add_argument("--side", type=int, default=256)
    parser.add_argument("--report", type=int, default=1000)
    args = parser.parse_args()
    bay = Bay(args.side, spacing=200.0)
    move = torch.compile(advance)
    clock = 0.0
    with torch.no_grad():
        for step in range(args.steps):
            dt = bay.largest_step()
            bay.level, bay.u, bay.v = move(bay.level, bay.u, bay.v, bay.floor, bay.spacing, dt)
            clock += dt
            if step % args.report == 0:
                print(f"{clock:8.1f} s  crest {float(bay.level.max()):.3f} m")


if __name__ == "__main__":
    main()
