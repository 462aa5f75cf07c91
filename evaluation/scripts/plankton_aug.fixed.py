"""On-the-fly augmentation for plankton images: random warp, film grain, vignetting, then a cheap classifier."""
import os
import math
import torch
from torch import nn

SIZE, BATCH, CLASSES = 48, 48, 6
STEPS = int(os.environ.get("STEPS", "2200"))


@torch.compiler.disable
def resample(images, grid):
    return nn.functional.grid_sample(images, grid, mode="bicubic", padding_mode="border", align_corners=False)


@torch.compile
def augment(images, angle, zoom, grain, blotch):
    cos, sin = torch.cos(angle) / zoom, torch.sin(angle) / zoom
    line = torch.linspace(-1, 1, SIZE)
    y, x = torch.meshgrid(line, line, indexing="ij")
    gx = cos[:, None, None] * x - sin[:, None, None] * y
    gy = sin[:, None, None] * x + cos[:, None, None] * y
    ripple = 0.05 * torch.sin(5.0 * gx + blotch[:, None, None])
    grid = torch.stack((gx + ripple, gy - ripple), -1)
    warped = resample(images, grid)
    dark = 1 - 0.3 * (x * x + y * y)
    exposed = warped * dark + 0.05 * torch.sigmoid(blotch)[:, None, None, None]
    noisy = exposed + grain * torch.sqrt(exposed.clamp_min(1e-4))
    return (noisy.clamp(0, 1) - 0.4) / 0.25


class Shapes:
    def __init__(self, seed):
        self.gen = torch.Generator().manual_seed(seed)
        line = torch.linspace(-1, 1, SIZE)
        self.y, self.x = torch.meshgrid(line, line, indexing="ij")

    def batch(self):
        label = torch.randint(0, CLASSES, (BATCH,), generator=self.gen)
        arms = (label + 2).float()[:, None, None]
        r = (self.x ** 2 + self.y ** 2).sqrt()
        theta = torch.atan2(self.y, self.x)
        edge = 0.5 + 0.2 * torch.cos(arms * theta)
        body = torch.sigmoid(20 * (edge - r))
        return torch.stack((body, body * r), 1), label


def main():
    torch.manual_seed(33)
    shapes = Shapes(34)
    stock = [shapes.batch() for _ in range(16)]
    net = nn.Sequential(nn.AvgPool2d(4), nn.Flatten(), nn.Linear(2 * (SIZE // 4) ** 2, 64), nn.ReLU(), nn.Linear(64, CLASSES))
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    film = 0.1 * torch.randn(BATCH + 8, 2, SIZE, SIZE)
    smooth = math.log(CLASSES)
    for step in range(STEPS):
        images, label = stock[step % len(stock)]
        with torch.no_grad():
            angle = 2 * math.pi * torch.rand(BATCH)
            zoom = 0.8 + 0.4 * torch.rand(BATCH)
            grain = film[step % 8:step % 8 + BATCH]
            views = augment(images, angle, zoom, grain, torch.randn(BATCH))
        loss = nn.functional.cross_entropy(net(views), label)
        opt.zero_grad()
        loss.backward()
        opt.step()
        smooth = 0.97 * smooth + 0.03 * loss.item()
        if step % 110 == 0:
            print(f"step {step:5d}  loss {smooth:.4f}  view mean {views.mean().item():+.3f}")
    print("final", round(smooth, 4))


if __name__ == "__main__":
    main()
