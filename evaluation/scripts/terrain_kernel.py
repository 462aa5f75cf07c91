"""Kriging-like smoothing of terrain heights, one tile after another."""
import argparse
from functools import lru_cache

import torch


@lru_cache(maxsize=8)
def covariance(points, length_scale):
    """Spatial weights of the survey grid; the same for every tile."""
    t = torch.linspace(0.0, 1.0, points)
    gap = (t[:, None] - t[None, :]).abs() / length_scale
    matern = (1.0 + gap + gap * gap / 3.0) * torch.exp(-gap)
    wobble = torch.cos(gap * 3.0) * 0.01
    kernel = matern + wobble * torch.sin(gap + 0.5)
    return kernel / kernel.sum(dim=1, keepdim=True)


def smooth(profile, length_scale=0.05):
    weights = covariance(profile.shape[-1], length_scale)
    base = profile @ weights.T
    residual = profile - base
    return base + torch.tanh(residual) * 0.5


@torch.compile
def process(tile, bias):
    levelled = tile - tile.mean(dim=-1, keepdim=True)
    levelled = levelled + 1e-3 * torch.randn_like(levelled)      # dither
    out = smooth(levelled) + bias
    return out.relu(), out.square().mean()


class Survey:
    def __init__(self, tiles, width, seed):
        g = torch.Generator().manual_seed(seed)
        self.tiles = torch.randn(tiles, 16, width, generator=g).cumsum(-1) * 0.1
        self.bias = torch.zeros(16, 1)

    def __len__(self):
        return len(self.tiles)

    def tile(self, i):
        return self.tiles[i % len(self.tiles)]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=6100)
    ap.add_argument("--width", type=int, default=768)
    args = ap.parse_args()
    survey = Survey(40, args.width, seed=9)
    roughness = []
    for step in range(args.steps):
        heights, energy = process(survey.tile(step), survey.bias)
        roughness.append(energy)
        if len(roughness) == 200:
            print(f"{step:6d} roughness {torch.stack(roughness).mean():.5f} peak {heights.max():.3f}")
            roughness.clear()


if __name__ == "__main__":
    main()
