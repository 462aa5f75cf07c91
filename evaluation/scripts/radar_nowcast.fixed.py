"""Short-range rain nowcast: advect an ensemble of radar fields along an estimated motion field."""
import os
import time

import torch
import torch.nn.functional as F

HEIGHT, WIDTH = 192, 192
MEMBERS = 3
LEVELS = 6
DT = 1.0 / 12.0


def motion_field(members, generator):
    coarse = torch.randn(members, 2, 8, 8, generator=generator)
    flow = F.interpolate(coarse, size=(HEIGHT, WIDTH), mode="bicubic", align_corners=True)
    flow = flow * 6.0 + torch.tensor([9.0, -4.0]).view(1, 2, 1, 1)
    return flow.permute(0, 2, 3, 1).contiguous()


def initial_rain(members, generator):
    cells = torch.rand(members, LEVELS, 12, 12, generator=generator) ** 4
    rain = F.interpolate(cells, size=(HEIGHT, WIDTH), mode="bicubic", align_corners=True)
    return rain.clamp_min(0.0) * 40.0


def base_grid():
    ys = torch.linspace(-1.0, 1.0, HEIGHT)
    xs = torch.linspace(-1.0, 1.0, WIDTH)
    gy, gx = torch.meshgrid(ys, xs, indexing="ij")
    return torch.stack([gx, gy], dim=-1).unsqueeze(0)


def departure(flow, grid):
    scale = torch.tensor([2.0 / (WIDTH - 1), 2.0 / (HEIGHT - 1)])
    return grid - flow * scale * DT


@torch.compiler.disable
def warp(field, points):
    return F.grid_sample(field, points, mode="bilinear", padding_mode="border", align_corners=True)


@torch.compile
def advance(rain, flow, grid, trend):
    points = departure(flow, grid)
    moved = warp(rain, points)
    growth = torch.exp(-trend * DT) * (1.0 + 0.02 * torch.tanh(moved * 0.1))
    moved = moved * growth
    moved = torch.where(moved < 0.05, torch.zeros_like(moved), moved)
    reflectivity = 10.0 * torch.log10(200.0 * moved[:, 0].clamp_min(0.01) ** 1.5)
    return moved, reflectivity


def main():
    torch.set_num_threads(1)
    steps = int(os.environ.get("STEPS", "240"))
    generator = torch.Generator().manual_seed(11)
    rain = initial_rain(MEMBERS, generator)
    flow = motion_field(MEMBERS, generator)
    grid = base_grid()
    trend = torch.rand(MEMBERS, 1, 1, 1, generator=generator) * 0.2
    total = torch.zeros(LEVELS, HEIGHT, WIDTH)
    peak = torch.full((MEMBERS,), -99.0)
    half = time.perf_counter()
    with torch.no_grad():
        for step in range(steps):
            if step == steps // 2:
                half = time.perf_counter()
            rain, dbz = advance(rain, flow, grid, trend)
            total += rain.mean(dim=0) * DT
            peak = torch.maximum(peak, dbz.amax(dim=(1, 2)))
            if step % 24 == 23:
                rain = torch.maximum(rain, initial_rain(MEMBERS, generator))
    per_step = (time.perf_counter() - half) / max(1, steps - steps // 2)
    print(f"max accumulation {total.max().item():.2f} mm, peak {peak.max().item():.1f} dBZ")
    print(f"{per_step * 1e3:.3f} ms per step")


if __name__ == "__main__":
    main()
