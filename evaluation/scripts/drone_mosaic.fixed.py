"""Accumulate a ground mosaic from a downward-looking multispectral camera."""
import os
import collections
import math
import time

import torch
import torch.nn.functional as F

torch.set_num_threads(1)

BANDS, H, W = 16, 256, 256
STEPS = int(os.environ.get("STEPS", "3500"))


def pose_to_theta(yaw, dx, dy, zoom):
    c, s = math.cos(yaw) * zoom, math.sin(yaw) * zoom
    return torch.tensor([[[c, -s, dx], [s, c, dy]]])


@torch.compiler.disable
def warp(frame, theta):
    grid = F.affine_grid(theta, frame.shape, align_corners=False)
    return F.grid_sample(frame, grid, mode="bilinear", padding_mode="zeros", align_corners=False)


def blend(mosaic, hits, frame, theta, vignette):
    corrected = frame * vignette
    placed = warp(corrected, theta)
    inside = (placed.sum(dim=1, keepdim=True) > 0).to(placed.dtype)
    weight = inside / (1.0 + 0.02 * hits)
    diff = placed - mosaic
    robust = diff * torch.exp(-diff.square())
    mosaic = mosaic + weight * torch.where(hits > 0, robust, diff)
    hits = (hits + inside).clamp_max(200.0)
    return mosaic, hits, diff.abs().mean()


class Flight:
    def __init__(self, seed=0):
        g = torch.Generator().manual_seed(seed)
        base = torch.rand(1, BANDS, H // 16, W // 16, generator=g)
        scene = F.interpolate(base, size=(H, W), mode="bilinear")
        self.frames = [
            (scene + 0.02 * torch.randn(scene.shape, generator=g)).clamp(0, 1) for _ in range(4)
        ]

    def pose(self, k):
        return pose_to_theta(
            yaw=0.03 * math.sin(k / 40), dx=0.1 * math.sin(k / 90),
            dy=0.1 * math.cos(k / 70), zoom=1.0 + 0.02 * math.sin(k / 33),
        )


def main():
    yy, xx = torch.meshgrid(torch.linspace(-1, 1, H), torch.linspace(-1, 1, W), indexing="ij")
    vignette = 1.0 + 0.25 * (xx * xx + yy * yy)
    flight = Flight()
    mosaic = torch.zeros(1, BANDS, H, W)
    hits = torch.zeros(1, 1, H, W)
    blend_c = torch.compile(blend)
    recent = collections.deque(maxlen=50)

    with torch.no_grad():
        for k in range(3):
            blend_c(mosaic, hits, flight.frames[k], flight.pose(k), vignette)
        spans = []
        for k in range(STEPS):
            theta = flight.pose(k)
            t0 = time.perf_counter()
            mosaic, hits, err = blend_c(mosaic, hits, flight.frames[k % 4], theta, vignette)
            spans.append(time.perf_counter() - t0)
            recent.append(err)
            if k % 1000 == 0:
                print(f"frame {k} residual {torch.stack(list(recent)).mean().item():.4f}")

    spans.sort()
    print(f"coverage {(hits > 0).float().mean().item():.3f}")
    print(f"median step {spans[len(spans) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
