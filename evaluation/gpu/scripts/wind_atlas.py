"""Drift of super-pressure balloons through a reanalysis wind atlas."""
import os
import time

import torch

small = os.environ.get("SMALL") == "1"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
STEPS = int(os.environ.get("STEPS", 2000))
TIMES, LEVELS, NLAT, NLON = (3, 4, 19, 36) if small else (72, 22, 721, 1440)
FLEET = 500 if small else 20000
DT = 120.0
METRES_PER_DEGREE = 111_320.0


def build_atlas():
    torch.manual_seed(0)
    shape = (TIMES, LEVELS, NLAT, NLON)
    zonal = torch.randn(shape, device=device).mul_(6.0).add_(8.0)
    meridional = torch.randn(shape, device=device).mul_(4.0)
    return zonal, meridional


def corners(table, t, k, lat, lon):
    i = lat.floor().long().clamp(0, NLAT - 2)
    j = lon.floor().long().remainder(NLON)
    j1 = (j + 1).remainder(NLON)
    fy = (lat - i).clamp(0, 1)
    fx = lon - lon.floor()
    south = table[t, k, i, j] * (1 - fx) + table[t, k, i, j1] * fx
    north = table[t, k, i + 1, j] * (1 - fx) + table[t, k, i + 1, j1] * fx
    return south * (1 - fy) + north * fy


def wind(zonal, meridional, hour, level, lat, lon):
    t0 = hour.floor().long().clamp(0, TIMES - 2)
    ft = hour - t0
    y = (lat + 90.0) * ((NLAT - 1) / 180.0)
    x = lon * (NLON / 360.0)
    u = corners(zonal, t0, level, y, x) * (1 - ft) + corners(zonal, t0 + 1, level, y, x) * ft
    v = corners(meridional, t0, level, y, x) * (1 - ft) + corners(meridional, t0 + 1, level, y, x) * ft
    return u, v


@torch.compile(mode="reduce-overhead")
def advance(zonal, meridional, hour, level, lat, lon):
    u, v = wind(zonal, meridional, hour, level, lat, lon)
    shrink = torch.cos(torch.deg2rad(lat)).clamp_min(0.05)
    lat_mid = (lat + 0.5 * DT * v / METRES_PER_DEGREE).clamp(-89.0, 89.0)
    lon_mid = (lon + 0.5 * DT * u / (METRES_PER_DEGREE * shrink)).remainder(360.0)
    u, v = wind(zonal, meridional, hour, level, lat_mid, lon_mid)
    lat_new = (lat + DT * v / METRES_PER_DEGREE).clamp(-89.0, 89.0)
    lon_new = (lon + DT * u / (METRES_PER_DEGREE * shrink)).remainder(360.0)
    return lat_new, lon_new


@torch.no_grad()
def main():
    zonal, meridional = build_atlas()
    lat = torch.rand(FLEET, device=device) * 120 - 60
    lon = torch.rand(FLEET, device=device) * 360
    level = torch.randint(0, LEVELS, (FLEET,), device=device)
    hour = torch.zeros(FLEET, device=device)
    began = time.perf_counter()
    for step in range(STEPS):
        new_lat, new_lon = advance(zonal, meridional, hour, level, lat, lon)
        lat.copy_(new_lat)
        lon.copy_(new_lon)
        hour.add_(DT / 3600.0).remainder_(TIMES - 1.0)
        if step % 200 == 0:
            print(f"step {step:5d} mean |lat| {lat.abs().mean().item():.3f} "
                  f"({time.perf_counter() - began:.1f} s)")
    print("spread in longitude", float(lon.std()))


if __name__ == "__main__":
    main()
