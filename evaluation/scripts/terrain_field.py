"""Query a coordinate network for terrain height and albedo along camera rays."""
import os
import time

import torch
from torch import nn

RAYS, SAMPLES = 768, 24
OCTAVES = 6
STEPS = int(os.environ.get("STEPS", "240"))


class FrequencyEncoding(nn.Module):
    """Coordinates, and their sines and cosines at rising octaves."""

    def __init__(self, octaves):
        super().__init__()
        self.register_buffer("freq", 2.0 ** torch.arange(octaves))
        self.width = 3 + 2 * 3 * octaves

    def forward(self, p):
        angle = (p[:, None, :] * self.freq[None, :, None]).flatten(1)
        return torch.cat([p, torch.sin(angle), torch.cos(angle)], dim=-1)


class TerrainField(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = FrequencyEncoding(OCTAVES)
        self.body = nn.Sequential(nn.Linear(self.encode.width, 16), nn.ReLU(),
                                  nn.Linear(16, 4))

    def forward(self, p):
        out = self.body(self.encode(p))
        density = torch.nn.functional.softplus(out[:, 0])
        albedo = torch.sigmoid(out[:, 1:])
        return density, albedo


def camera_rays(n, g):
    origin = torch.tensor([0.0, 0.0, 1.5]).expand(n, 3)
    direction = torch.randn(n, 3, generator=g) * torch.tensor([1.0, 1.0, 0.2])
    direction = direction - torch.tensor([0.0, 0.0, 0.8])
    return origin, direction / direction.norm(dim=-1, keepdim=True)


def sample_points(origin, direction, depths):
    return (origin[:, None, :] + direction[:, None, :] * depths[None, :, None]).reshape(-1, 3)


def composite(density, albedo, gap):
    density = density.view(RAYS, SAMPLES)
    alpha = 1.0 - torch.exp(-density * gap)
    clear = torch.cumprod(1.0 - alpha + 1e-7, dim=1)
    weight = alpha * torch.cat([torch.ones(RAYS, 1), clear[:, :-1]], dim=1)
    return (weight[..., None] * albedo.view(RAYS, SAMPLES, 3)).sum(1)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(4)
    g = torch.Generator().manual_seed(9)
    field = TerrainField().eval()
    query = torch.compile(field)
    depths = torch.linspace(0.5, 4.0, SAMPLES)
    gap = float(depths[1] - depths[0])
    picture = torch.zeros(3)
    started = time.perf_counter()
    with torch.no_grad():
        for step in range(STEPS):
            origin, direction = camera_rays(RAYS, g)
            density, albedo = query(sample_points(origin, direction, depths))
            picture += composite(density, albedo, gap).mean(0)
    took = time.perf_counter() - started
    mean = (picture / STEPS).tolist()
    print(f"{STEPS} tiles, {1e3 * took / STEPS:.2f} ms each, mean colour "
          + " ".join(f"{c:.3f}" for c in mean))


if __name__ == "__main__":
    main()
