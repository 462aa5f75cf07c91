"""Hourly energy balance of a seasonal snow cover on a mountain grid.

Each cell carries snow water, liquid water held in the pack, its temperature and the
age of its surface.  Weather comes as a few station series that are spread over the
grid with the terrain.
"""
import os
import math
import time

import torch

torch.set_num_threads(1)

SIGMA = 5.67e-8
FUSION = 3.34e5
HEAT_ICE = 2100.0
WATER = 1000.0


def make_terrain(ny, nx, seed=17):
    g = torch.Generator().manual_seed(seed)
    y = torch.linspace(0, 3, ny).unsqueeze(1)
    x = torch.linspace(0, 4, nx).unsqueeze(0)
    relief = torch.sin(2.1 * x) * torch.cos(1.7 * y) + 0.4 * torch.sin(5.0 * x + y)
    height = 1500.0 + 500.0 * relief + 40.0 * torch.rand(ny, nx, generator=g)
    exposure = (0.75 + 0.25 * torch.cos(2.1 * x + 1.7 * y)).contiguous()
    return height, exposure


class Station:
    def __init__(self, hours=240, seed=18):
        g = torch.Generator().manual_seed(seed)
        h = torch.arange(hours)
        daily = torch.sin(2 * math.pi * (h - 8) / 24)
        self.air = 271.0 + 6.0 * daily + torch.randn(hours, generator=g)
        self.sun = (700.0 * daily).clamp_min(0)
        self.snowfall = (torch.randn(hours, generator=g) - 1.5).clamp_min(0) * 2e-3
        self.wind = 1.0 + 3.0 * torch.rand(hours, generator=g)

    def hour(self, n):
        k = n % self.air.numel()
        return self.air[k], self.sun[k], self.snowfall[k], self.wind[k]


class SnowModel:
    def __init__(self, height, exposure, dt=3600.0):
        self.lapse = -0.0065 * (height - 1500.0)
        self.exposure = exposure
        self.dt = dt
        self.advance = torch.compile(self.hour)

    def initial(self):
        swe = (0.25 - 0.02 * self.lapse).clamp_min(0.05)
        liquid = torch.zeros_like(swe)
        temperature = torch.full_like(swe, 268.0)
        age = torch.full_like(swe, 24.0)
        return swe, liquid, temperature, age

    def hour(self, state, weather):
        swe, liquid, temperature, age = state
        air, sun, snowfall, wind = weather
        t_air = air + self.lapse
        fresh = torch.where(t_air < 274.0, snowfall, torch.zeros_like(t_air))
        age = torch.where(fresh > 5e-4, torch.zeros_like(age), age + 1.0)
        albedo = 0.5 + 0.35 / (1.0 + age * 0.01)

        shortwave = (1.0 - albedo) * sun * self.exposure
        a2 = t_air * t_air
        t2 = temperature * temperature
        longwave = SIGMA * (0.78 * a2 * a2 - 0.98 * t2 * t2)
        sensible = 2.2 * wind * (t_air - temperature)
        net = shortwave + longwave + sensible

        mass = (swe + fresh) * WATER
        warmed = temperature + net * self.dt / (HEAT_ICE * (mass + 50.0))
        excess = (warmed - 273.15).clamp_min(0) * HEAT_ICE * (mass + 50.0)
        melt = torch.minimum(excess / (FUSION * WATER), swe + fresh)
        temperature = warmed.clamp(240.0, 273.15)
        swe = swe + fresh - melt
        held = 0.05 * swe
        runoff = (liquid + melt - held).clamp_min(0)
        liquid = liquid + melt - runoff

        budget = {
            "albedo": albedo,
            "shortwave": shortwave,
            "longwave": longwave,
            "sensible": sensible,
            "net": net,
            "melt": melt,
            "runoff": runoff,
            "cold_content": (273.15 - temperature) * HEAT_ICE * swe * WATER,
        }
        return (swe, liquid, temperature, age), budget


def main(steps=int(os.environ.get("STEPS", "12000")), ny=800, nx=960, report=2000):
    torch.manual_seed(0)
    model = SnowModel(*make_terrain(ny, nx))
    station = Station()
    state = model.initial()
    start = time.perf_counter()
    with torch.no_grad():
        for n in range(steps):
            state, budget = model.advance(state, station.hour(n))
            if n % report == 0:
                means = {k: float(v.mean()) for k, v in budget.items()}
                print(f"hour {n:5d}  swe {float(state[0].mean()):.4f} m  net {means['net']:8.2f}  "
                      f"albedo {means['albedo']:.3f}  runoff {1e3 * means['runoff']:.4f} mm")
    took = time.perf_counter() - start
    print(f"swe {float(state[0].double().sum()):.4f}  liquid {float(state[1].double().sum()):.4f}")
    print(f"{steps} hours in {took:.1f} s, {1e3 * took / steps:.2f} ms an hour")


if __name__ == "__main__":
    main()
