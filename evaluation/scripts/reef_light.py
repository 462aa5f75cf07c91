"""Light reaching a reef bed, recomputed as sun height and turbidity change."""
import os
from dataclasses import dataclass
import math

import torch

torch.set_num_threads(1)

STEPS = int(os.environ.get("STEPS", "1200"))
ROWS, COLS = 3072, 4096


@dataclass
class Water:
    attenuation: float = 0.11
    scatter: float = 0.03
    floor: float = 0.02


def bathymetry(rows, cols):
    y = torch.linspace(0, 4 * math.pi, rows)[:, None]
    x = torch.linspace(0, 6 * math.pi, cols)[None, :]
    depth = 6 + 4 * torch.sin(y) * torch.cos(x * 0.7) + 2 * torch.cos(x + y)
    return depth.clamp_min(0.1).contiguous()


def light_at_bed(depth, surface, slope, floor):
    direct = surface - slope * depth
    shaded = floor + 0.25 * floor * depth
    return torch.where(direct > floor, direct, shaded)


class ReefModel:
    def __init__(self, water, depth):
        self.water = water
        self.depth = depth
        self.kernel = torch.compile(light_at_bed)
        self.surface = torch.zeros(())
        self.slope = torch.zeros(())
        self.floor = torch.tensor(water.floor)

    def set_sun(self, hour):
        height = max(0.05, math.sin(math.pi * (hour - 6) / 12))
        self.surface.fill_(height)
        self.slope.fill_(height * (self.water.attenuation + self.water.scatter) / 1.5)

    def bed(self):
        return self.kernel(self.depth, self.surface, self.slope, self.floor)


def probe_points(rows, cols, n):
    g = torch.Generator().manual_seed(2)
    r = torch.randint(0, rows, (n,), generator=g)
    c = torch.randint(0, cols, (n,), generator=g)
    return r, c


def main():
    depth = bathymetry(ROWS, COLS)
    reef = ReefModel(Water(), depth)
    rr, cc = probe_points(ROWS, COLS, 64)

    dose = torch.zeros(64)
    for tick in range(STEPS):
        hour = 6 + 12 * ((tick % 240) / 240)
        reef.set_sun(hour)
        bed = reef.bed()
        dose += bed[rr, cc]
        if tick % 300 == 0:
            print(f"tick {tick:4d}  hour {hour:5.2f}  probe mean {bed[rr, cc].mean().item():.4f}")

    print("dose range: %.2f .. %.2f" % (dose.min().item(), dose.max().item()))


if __name__ == "__main__":
    main()
