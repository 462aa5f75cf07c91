"""Fly around a few blobs, drawn by sphere tracing with a fixed number of marches."""
import math
import os

import torch


def distance(p, time):
    x, y, z = p
    wave = 0.1 * torch.sin(4 * x + time) * torch.sin(4 * y) * torch.cos(3 * z - time)
    ball = torch.sqrt(x * x + y * y + z * z + 1e-6) - 1
    ring = torch.sqrt((torch.sqrt(x * x + z * z + 1e-6) - 1.6).square() + y * y + 1e-6) - 0.2
    return torch.minimum(ball + wave, ring) * 0.7


@torch.compile(fullgraph=True)
def draw(rays, eye, time, marches: int = 5):
    depth = torch.zeros_like(rays[0])
    for _ in range(marches):
        depth = depth + distance([e + depth * r for e, r in zip(eye, rays)], time)
    hit = torch.sigmoid((6 - depth) * 4)
    glow = torch.exp(-0.3 * depth) * (0.6 + 0.4 * torch.cos(2 * depth))
    return (hit * glow).clamp(0, 1)


def rays(side):
    ticks = torch.linspace(-1, 1, side)
    y, x = torch.meshgrid(ticks, ticks, indexing="ij")
    z = torch.full_like(x, 1.5)
    long = torch.sqrt(x * x + y * y + z * z)
    return torch.stack([x / long, y / long, z / long])


@torch.no_grad()
def main():
    frames, side = int(os.environ.get("FRAMES", 6000)), int(os.environ.get("SIDE", 256))
    view, exposure = rays(side), torch.zeros(side, side)
    for n in range(frames):
        turn = torch.tensor(2 * math.pi * n / 300)
        eye = torch.stack([0.5 * torch.sin(turn), 0.3 * torch.cos(turn), torch.tensor(-4.0)])
        exposure.lerp_(draw(view, eye, turn), 0.1)
        if n % 1000 == 999:
            print(f"frame {n + 1}: mean exposure {exposure.mean().item():.4f}")


if __name__ == "__main__":
    main()
