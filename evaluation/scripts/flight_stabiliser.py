"""Stabilise and denoise a multispectral video taken from a survey drone.

Each incoming frame is warped back to the reference pose with the attitude
estimate of the autopilot, then blended into a running background estimate.
"""
import math
import os

import torch
import torch.nn.functional as F

BANDS, H, W = 8, 144, 176
LEVELS = 3


def pose_matrix(roll: torch.Tensor, shift: torch.Tensor, zoom: torch.Tensor) -> torch.Tensor:
    c, s = torch.cos(roll) * zoom, torch.sin(roll) * zoom
    top = torch.stack([c, -s * (H / W), shift[0]])
    bottom = torch.stack([s * (W / H), c, shift[1]])
    return torch.stack([top, bottom]).unsqueeze(0)


def warp(frame: torch.Tensor, theta: torch.Tensor) -> torch.Tensor:
    grid = F.affine_grid(theta, list(frame.shape), align_corners=False)
    return F.grid_sample(frame, grid, mode="bilinear", padding_mode="border", align_corners=False)


def vegetation_index(x: torch.Tensor) -> torch.Tensor:
    red, nir = x[:, 3:4], x[:, 6:7]
    return (nir - red) / (nir + red + 1e-3)


def blend(aligned, background, variance, gain):
    residual = aligned - background
    weight = torch.exp(-0.5 * residual.square() / (variance + 1e-4))
    new_background = background + gain * weight * residual
    new_variance = (1 - gain) * variance + gain * residual.square().clamp(max=0.25)
    ndvi = vegetation_index(new_background)
    moving = (residual.abs().mean(1, keepdim=True) > 3 * new_variance.mean(1, keepdim=True).sqrt())
    return new_background, new_variance, ndvi.mean(), moving.float().mean()


def process(frame, theta, background, variance, gain):
    aligned = warp(frame, theta)
    return blend(aligned, background, variance, gain)


class Autopilot:
    def __init__(self, seed=5):
        self.gen = torch.Generator().manual_seed(seed)
        yy, xx = torch.meshgrid(torch.linspace(0, 9, H), torch.linspace(0, 11, W), indexing="ij")
        base = torch.stack([torch.sin(xx * (1 + 0.2 * b)) * torch.cos(yy) for b in range(BANDS)])
        self.scene = (0.5 + 0.4 * base).unsqueeze(0)
        self.noise = 0.05 * torch.randn(6, 1, BANDS, H, W, generator=self.gen)

    def read(self, i):
        frame = self.scene + self.noise[i % 6]
        roll = torch.tensor(0.04 * math.sin(0.21 * i))
        shift = torch.tensor([0.03 * math.cos(0.17 * i), 0.02 * math.sin(0.13 * i)])
        zoom = torch.tensor(1.0 + 0.01 * math.sin(0.05 * i))
        return frame, pose_matrix(roll, shift, zoom)


def main():
    steps = int(os.environ.get("STEPS", "240"))
    torch.manual_seed(0)
    pilot = Autopilot()
    background = pilot.scene.clone()
    variance = torch.full_like(background, 0.01)
    gain = torch.tensor(0.05)
    step = torch.compile(process)

    with torch.no_grad():
        for i in range(steps):
            frame, theta = pilot.read(i)
            background, variance, ndvi, moving = step(frame, theta, background, variance, gain)

    print(f"{steps} frames, ndvi {float(ndvi):.4f}, moving share {float(moving):.4f}, "
          f"noise floor {float(variance.mean()):.5f}")


if __name__ == "__main__":
    main()
