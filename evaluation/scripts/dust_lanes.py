"""Radiative-transfer toy: brightness of dust lanes for a batch of viewing angles, with a relaxing albedo."""
import os
import time

import torch
import torch.nn as nn

torch.manual_seed(121)

RAYS = 900
DEPTHS = 96
STEPS = int(os.environ.get("STEPS", "14000"))
LOG = 500


class DustLane(nn.Module):
    def __init__(self):
        super().__init__()
        self.albedo = 0.2
        self.asym = nn.Parameter(torch.tensor(0.35))
        self.register_buffer("z", torch.linspace(0, 1, DEPTHS))

    def forward(self, angle, clump):
        mu = torch.cos(angle)[:, None]
        density = torch.asinh(3.0 * clump) * torch.exp(-3.0 * (self.z - 0.5).abs())
        layer = torch.trunc(density * 12.0) / 12.0
        tau = (0.7 * density + 0.3 * layer) / (mu.abs() + 0.1)
        g = self.asym
        phase = (1 - g * g) / (1 + g * g - 2 * g * mu).pow(1.5)
        lost = torch.exp(-tau.cumsum(1) / DEPTHS * 4.0)
        glow = self.albedo * phase * tau * lost + (1 - self.albedo) * torch.sin(tau).square() * 0.02
        return glow.sum(1), lost[:, -1]


def main():
    lane = DustLane().eval().requires_grad_(False)
    render = torch.compile(lane)
    angle = torch.linspace(-1.5, 1.5, RAYS)
    clumps = [torch.rand(RAYS, DEPTHS) for _ in range(8)]
    mean = torch.zeros(RAYS)
    t0 = time.perf_counter()
    for step in range(1, STEPS + 1):
        lane.albedo = 0.2 + 0.5 * (1.0 - 0.999**step)
        sky, through = render(angle, clumps[step % len(clumps)])
        mean = 0.98 * mean + 0.02 * sky
        if step % LOG == 0:
            dt = (time.perf_counter() - t0) / LOG * 1e3
            print(f"frame {step} albedo {lane.albedo:.3f} sky {mean.mean().item():.4f} clear {through.mean().item():.4f} {dt:.3f} ms/step")
            t0 = time.perf_counter()


if __name__ == "__main__":
    main()
