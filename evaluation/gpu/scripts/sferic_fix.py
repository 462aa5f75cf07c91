"""Lightning location by grid search over arrival-time misfit.

For every stroke the arrival times at six VLF receivers are compared with the travel
times to all cells of a latitude/longitude grid; the cell of the smallest misfit is
the fix.  Travel times are tabulated once per station.
"""
import os
import time

import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
NLAT, NLON = (64, 128) if SMALL else (2048, 4096)
STATIONS = [(47.4, 8.5), (52.1, 5.2), (40.4, -3.7), (59.9, 10.7), (37.9, 23.7), (64.1, -21.9)]
SPEED_KM_MS = 299.0
EARTH_KM = 6371.0


def travel_tables(device):
    lat = torch.deg2rad(torch.linspace(30.0, 70.0, NLAT, device=device))[:, None]
    lon = torch.deg2rad(torch.linspace(-30.0, 40.0, NLON, device=device))[None, :]
    tables = []
    for slat, slon in STATIONS:
        a, o = torch.deg2rad(torch.tensor([slat, slon], device=device))
        h = torch.sin((lat - a) / 2) ** 2 + torch.cos(lat) * torch.cos(a) * torch.sin((lon - o) / 2) ** 2
        tables.append(2 * EARTH_KM * torch.asin(h.clamp(0, 1).sqrt()) / SPEED_KM_MS)
    return torch.stack(tables)


def huber(r, k):
    a = r.abs()
    return torch.where(a < k, 0.5 * r * r, k * (a - 0.5 * k))


@torch.compile
def locate(tables, toa, weight):
    """Grid cell with the smallest weighted robust misfit, and the misfit there."""
    resid = toa[:, None, None] - tables
    origin = (resid * weight[:, None, None]).sum(0) / weight.sum()
    misfit = (huber(resid - origin, 0.05) * weight[:, None, None]).sum(0)
    best = torch.argmin(misfit.reshape(-1))
    return best, origin.reshape(-1).index_select(0, best.reshape(1)).squeeze(0)


def strokes(n, tables, gen):
    out = []
    for _ in range(n):
        i = int(torch.randint(NLAT, (1,), generator=gen))
        j = int(torch.randint(NLON, (1,), generator=gen))
        jitter = (torch.randn(len(STATIONS), generator=gen) * 0.004).to(tables.device)
        out.append((tables[:, i, j] + 12.5 + jitter, i * NLON + j))
    return out


def clock():
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def main():
    gen = torch.Generator().manual_seed(4)
    tables = travel_tables(DEVICE)
    weight = torch.tensor([1.0, 0.9, 1.1, 0.8, 1.0, 0.7], device=DEVICE)
    batch = strokes(16, tables, gen)
    fixes = torch.zeros(STEPS, dtype=torch.long, device=DEVICE)
    origins = torch.zeros(STEPS, device=DEVICE)
    half = STEPS // 2
    t0 = clock()
    for step in range(STEPS):
        if step == half:
            t0 = clock()
        toa, _ = batch[step % len(batch)]
        cell, t_origin = locate(tables, toa, weight)
        fixes[step] = cell
        origins[step] = t_origin
    ms = (clock() - t0) * 1e3 / (STEPS - half)
    truth = torch.tensor([batch[s % len(batch)][1] for s in range(STEPS)], device=DEVICE)
    off = ((fixes // NLON) - (truth // NLON)).abs().float().mean().item()
    print(f"mean row error {off:.3f}  origin {origins.mean().item():.4f} ms")
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()
