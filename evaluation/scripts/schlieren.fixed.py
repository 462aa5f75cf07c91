"""Background-oriented schlieren: recover a displacement field by warping the still image onto each frame."""
import os

import torch
import torch.nn.functional as F
from torch import nn

STEPS = int(os.environ.get("STEPS", "18000"))
H, W, COARSE = 80, 96, 8


class Plume(nn.Module):
    def __init__(self):
        super().__init__()
        self.knots = nn.Parameter(torch.zeros(1, 2, COARSE, COARSE))
        ys = torch.linspace(-1, 1, H)
        xs = torch.linspace(-1, 1, W)
        gy, gx = torch.meshgrid(ys, xs, indexing="ij")
        self.register_buffer("rest", torch.stack([gx, gy], -1)[None])

    def forward(self):
        flow = F.interpolate(self.knots, size=(H, W), mode="nearest")
        return flow.permute(0, 2, 3, 1)


@torch.compiler.disable
def warp(still, grid):
    return F.grid_sample(still, grid, mode="bicubic", padding_mode="border", align_corners=True)


def robust(r):
    return torch.log1p(r * r * 4.0) + 0.1 * torch.sqrt(r * r + 1e-4)


class Matcher(nn.Module):
    def __init__(self, still):
        super().__init__()
        self.plume = Plume()
        self.register_buffer("still", still)

    def forward(self, frame):
        flow = self.plume()
        moved = warp(self.still, self.plume.rest + 0.05 * torch.tanh(flow))
        data = robust(moved - frame).mean()
        smooth = (flow[:, 1:] - flow[:, :-1]).square().mean() + (flow[:, :, 1:] - flow[:, :, :-1]).square().mean()
        return data + 0.01 * smooth


def speckle(seed, channels=3):
    g = torch.Generator().manual_seed(seed)
    x = torch.rand(1, channels, H // 2, W // 2, generator=g)
    return F.interpolate(x, size=(H, W), mode="bilinear", align_corners=True)


def main():
    torch.manual_seed(0)
    still = speckle(6)
    frames = [torch.roll(still, (k % 3 - 1, k % 2), (2, 3)) for k in range(6)]
    matcher = Matcher(still)
    objective = torch.compile(matcher)
    opt = torch.optim.Adam(matcher.parameters(), lr=5e-3)
    every = max(1, STEPS // 20)
    for step in range(1, STEPS + 1):
        loss = objective(frames[step % 6])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % every == 0:
            print(f"step {step}  residual {loss.item():.5f}")


if __name__ == "__main__":
    main()
