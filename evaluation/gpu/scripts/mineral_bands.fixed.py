"""Absorption-feature search in an airborne imaging-spectrometer scene.

For every short run of neighbouring bands we compute how deep the reflectance
dips below the straight line between the two shoulders, and keep the deepest
dip (and where it was) per pixel.
"""
import os
import time

import torch

small = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = int(os.environ.get("STEPS", 12000))
ROWS, COLS, BANDS = (64, 64, 32) if small else (2048, 2048, 96)
RUN = 5


def load_scene():
    torch.manual_seed(3)
    scene = torch.rand(ROWS, COLS, BANDS, device=device)
    centre = torch.linspace(0, 1, BANDS, device=device)
    for mu, depth in ((0.22, 0.3), (0.57, 0.2), (0.81, 0.4)):
        scene -= depth * torch.exp(-((centre - mu) / 0.03) ** 2) * 0.5
    return scene.clamp_(0.02, 1.0)


@torch.compile
def dip(run, noise_floor):
    shoulder = 0.5 * (run[..., 0] + run[..., -1])
    depth = 1.0 - run.amin(dim=-1) / shoulder
    return torch.where(depth > noise_floor, depth, torch.zeros_like(depth))


@torch.no_grad()
def main():
    scene = load_scene()
    floor = torch.tensor(0.05, device=device)
    best = torch.zeros(ROWS, COLS, device=device)
    where = torch.zeros(ROWS, COLS, dtype=torch.int32, device=device)
    starts = list(range(0, BANDS - RUN + 1))
    began = time.perf_counter()
    for step in range(STEPS):
        first = starts[step % len(starts)]
        run = scene[..., first:first + RUN].contiguous()
        depth = dip(run, floor)
        deeper = depth > best
        where.masked_fill_(deeper, first)
        torch.maximum(best, depth, out=best)
        if first == starts[-1]:
            best.mul_(0.98)
        if step % 2000 == 0:
            print(f"run {step:6d} first band {first:3d} mean depth {best.mean().item():.4f} "
                  f"{time.perf_counter() - began:.1f} s")
    print("most frequent band", int(torch.mode(where.flatten().cpu()).values))


if __name__ == "__main__":
    main()
