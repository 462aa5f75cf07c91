"""Semi-Lagrangian extrapolation of radar reflectivity with a relaxed motion field."""
import os
import time

import torch
import torch.nn.functional as F

torch.manual_seed(5)

SIDE = 128
CHANNELS = 12
STEPS = int(os.environ.get("STEPS", "2400"))
LOG = 100


def base_grid(n):
    axis = torch.linspace(-1, 1, n)
    yy, xx = torch.meshgrid(axis, axis, indexing="ij")
    return torch.stack([xx, yy], dim=-1)[None]


@torch.compiler.disable
def sample(field, where):
    return F.grid_sample(field, where, padding_mode="border", align_corners=True)


class Advector(torch.nn.Module):
    def __init__(self, n, decay=0.995):
        super().__init__()
        self.register_buffer("grid", base_grid(n))
        self.decay = decay

    def backtrack(self, wind):
        half = self.grid - 0.5 * wind
        mid = sample(wind.permute(0, 3, 1, 2), half)
        return self.grid - mid.permute(0, 2, 3, 1)

    def forward(self, echo, wind, source):
        origin = self.backtrack(wind)
        moved = sample(echo, origin)
        birth = torch.asinh(3.0 * source) * torch.exp(-2.0 * moved) * torch.sin(3.0 * moved)
        rain_out = moved * torch.sigmoid(12.0 * (moved - 0.6)) * 0.05
        grown = self.decay * moved + 0.01 * torch.tanh(source) + 0.02 * birth - rain_out
        return grown.clamp(0.0, 1.0)


def swirl(n, angle):
    g = base_grid(n)
    x, y = g[..., 0], g[..., 1]
    c = torch.tensor(angle)
    return 0.02 * torch.stack([-y + 0.3 * torch.cos(c), x + 0.3 * torch.sin(c)], dim=-1)


def main():
    model = torch.compile(Advector(SIDE).eval())
    echo = torch.rand(1, CHANNELS, SIDE, SIDE)
    source = torch.randn(1, CHANNELS, SIDE, SIDE)
    winds = [swirl(SIDE, 0.2 * k) for k in range(16)]
    t0 = time.perf_counter()
    with torch.no_grad():
        for step in range(1, STEPS + 1):
            echo = model(echo, winds[step % 16], source)
            if step % LOG == 0:
                dt = (time.perf_counter() - t0) / LOG * 1e3
                print(f"lead {step} coverage {(echo > 0.3).float().mean():.3f} mean {echo.mean():.4f} {dt:.3f} ms/step")
                t0 = time.perf_counter()


if __name__ == "__main__":
    main()
