"""Accumulated solar dose on a city model (voxel grid), minute by minute.

Each voxel has an exposure time constant and a view factor; the sun's strength
follows a clear-sky curve through the day.
"""
import os
import math
import time

import torch

GRID = (160, 288, 256)
MINUTES = int(os.environ.get("STEPS", "1000"))
WARMUP = 10
SUNRISE, SUNSET = 330.0, 1230.0


class City:
    def __init__(self, seed):
        gen = torch.Generator().manual_seed(seed)
        self.view = torch.rand(GRID, generator=gen)
        height = torch.linspace(0, 1, GRID[0]).view(-1, 1, 1)
        self.view.mul_(0.25 + 0.75 * height)
        self.dose = torch.zeros(GRID)


def clear_sky(minute):
    """Strength of the sun, 0 at night, about 1 at noon."""
    phase = (minute - SUNRISE) / (SUNSET - SUNRISE)
    if not 0.0 < phase < 1.0:
        return 0.0
    return math.sin(math.pi * phase) ** 1.15


def strengths(count):
    minutes = torch.arange(count) * 1.2
    return torch.tensor([clear_sky(m) for m in minutes.tolist()])


@torch.compile
def expose(dose, view, sun):
    faded = dose * 0.998
    gain = view * sun * (1.0 - 0.1 * dose)
    return torch.clamp(faded + 0.01 * gain, 0.0, 10.0)


class Survey:
    """Keeps a few probes and the running picture of the whole city."""

    def __init__(self, city, probes):
        self.city = city
        self.probes = probes
        self.log = []

    def read(self, minute):
        values = [self.city.dose[p].item() for p in self.probes]
        self.log.append((minute, values))
        text = "  ".join(f"{v:.5f}" for v in values)
        print(f"minute {minute:5d}   {text}")

    def summary(self):
        dose = self.city.dose
        lit = (dose > 0.05).float().mean().item()
        return f"mean {dose.mean().item():.5f}, lit share {lit:.3f}"


def run_day(city, survey):
    suns = strengths(MINUTES)
    spent = 0.0
    quarter = MINUTES // 4
    for begin in range(0, MINUTES, quarter):
        start = time.perf_counter()
        for minute in range(begin, begin + quarter):
            city.dose = expose(city.dose, city.view, suns[minute])
        spent += time.perf_counter() - start
        survey.read(begin + quarter)
    return 1e3 * spent / MINUTES


@torch.no_grad()
def main():
    city = City(seed=8)
    night = torch.tensor(0.0)
    for _ in range(WARMUP):
        city.dose = expose(city.dose, city.view, night)
    survey = Survey(city, [(0, 10, 10), (80, 144, 128), (159, 200, 30)])
    per_step = run_day(city, survey)
    print(survey.summary())
    print(f"{per_step:.3f} ms per simulated minute")


if __name__ == "__main__":
    main()
