"""Obstacle map from a roof lidar: encode points, pool them per ground cell."""
import os
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(4)

STEPS = int(os.environ.get("STEPS", "4000"))
POINTS = 40000
GRID = 48
CHANNELS = 32
FLOOR = -10.0


class PillarEncoder(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.channels = channels
        self.embed = nn.Linear(5, channels)
        self.mix = nn.Conv2d(channels, 8, 3, padding=1)
        self.occupied = nn.Conv2d(8, 1, 1)

    def pool(self, feats, cell):
        rows = cell.unsqueeze(1).expand(-1, self.channels)
        canvas = feats.new_full((GRID * GRID, self.channels), FLOOR)
        return canvas.scatter_reduce(0, rows, feats, reduce="amax")

    def forward(self, points, cell):
        feats = torch.relu(self.embed(points))
        canvas = self.pool(feats, cell)
        image = canvas.t().reshape(1, self.channels, GRID, GRID)
        hidden = torch.relu(self.mix(image))
        return torch.sigmoid(self.occupied(hidden))[0, 0]


def sweep(generator):
    xy = torch.rand(POINTS, 2, generator=generator)
    z = torch.randn(POINTS, 1, generator=generator) * 0.4
    strength = torch.rand(POINTS, 2, generator=generator)
    cell = (xy[:, 0] * GRID).long() * GRID + (xy[:, 1] * GRID).long()
    return torch.cat([xy, z, strength], dim=1), cell


def main():
    gen = torch.Generator().manual_seed(9)
    recording = [sweep(gen) for _ in range(8)]
    encoder = PillarEncoder(CHANNELS).eval()
    run = torch.compile(encoder)

    heat = torch.zeros(GRID, GRID)
    with torch.no_grad():
        for step in range(STEPS):
            points, cell = recording[step % len(recording)]
            out = run(points, cell)
            heat.mul_(0.95).add_(out, alpha=0.05)
            if step % 500 == 0:
                print(f"sweep {step}: occupied cells {(heat > 0.02).sum().item()}")
    print(f"final mean occupancy {heat.mean().item():.5f}")


if __name__ == "__main__":
    main()
