"""Fit a small emission/absorption volume to a set of line-of-sight photographs."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)

SAMPLES = 64
RAYS = 4096
STEPS = int(os.environ.get("STEPS", "2000"))


class RayVolume(nn.Module):
    """One column of samples per ray, front to back along dim 0."""

    def __init__(self, samples, rays):
        super().__init__()
        g = torch.Generator().manual_seed(1)
        self.density = nn.Parameter(torch.randn(samples, rays, generator=g) * 0.3 - 1.0)
        self.shade = nn.Parameter(torch.randn(samples, rays, generator=g) * 0.1)
        self.register_buffer("delta", torch.full((samples, 1), 2.0 / samples))

    def forward(self):
        sigma = F.softplus(self.density)
        alpha = 1.0 - torch.exp(-sigma * self.delta)
        trans = torch.cumprod(1.0 - alpha, dim=0)
        weight = alpha * trans
        pixel = (weight * torch.sigmoid(self.shade)).sum(dim=0)
        depth = (weight * self.delta.cumsum(0)).sum(dim=0)
        return pixel, depth, trans[-1]


def photo_loss(model, target, mask):
    pixel, depth, left = model()
    fit = F.smooth_l1_loss(pixel, target)
    sil = (left - (1.0 - mask)).square().mean()
    return fit + 0.1 * sil + 1e-3 * depth.mean()


def synthetic_target(rays):
    t = torch.linspace(-3, 3, rays)
    target = torch.exp(-t * t) * 0.6
    mask = (t.abs() < 1.8).float()
    return target, mask


def main():
    model = RayVolume(SAMPLES, RAYS)
    target, mask = synthetic_target(RAYS)
    opt = torch.optim.SGD(model.parameters(), lr=20.0)
    loss_fn = torch.compile(photo_loss)

    def step():
        opt.zero_grad(set_to_none=True)
        loss = loss_fn(model, target, mask)
        loss.backward()
        opt.step()
        return loss

    for _ in range(3):
        step()

    laps = []
    for i in range(STEPS):
        t0 = time.perf_counter()
        loss = step()
        laps.append(time.perf_counter() - t0)
        if i % 500 == 0:
            print(f"iter {i:5d} loss {loss.item():.5f}")

    laps.sort()
    with torch.no_grad():
        print(f"final loss {photo_loss(model, target, mask).item():.5f}")
    print(f"median step {laps[len(laps) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
