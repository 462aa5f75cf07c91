"""Elastic augmentation and stain features for histology tiles (inference-time feature bank)."""
import os
import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(2024)

TILE = 160
TILES_PER_STEP = 6
STEPS = int(os.environ.get("STEPS", "2800"))
STAINS = torch.tensor([[0.65, 0.70, 0.29], [0.07, 0.99, 0.11], [0.27, 0.57, 0.78]])


def smooth_field(n, cells, strength, gen):
    """Random displacement of the tile on a coarse lattice, upsampled to full resolution."""
    coarse = torch.randn(n, 2, cells, cells, generator=gen) * strength
    field = F.interpolate(coarse, size=(TILE, TILE), mode="bilinear", align_corners=True)
    return field.permute(0, 2, 3, 1).contiguous()


def identity_lattice():
    axis = torch.linspace(-1, 1, TILE)
    yy, xx = torch.meshgrid(axis, axis, indexing="ij")
    return torch.stack([xx, yy], dim=-1).unsqueeze(0)


class Unmix(nn.Module):
    """Optical density and colour deconvolution."""

    def __init__(self, stains):
        super().__init__()
        stains = stains / stains.norm(dim=1, keepdim=True)
        self.register_buffer("inverse", torch.linalg.inv(stains))

    def forward(self, rgb):
        od = -torch.log(rgb.clamp_min(1e-3))
        r, g, b = od.unbind(1)
        m = self.inverse
        parts = [(r * m[0, i] + g * m[1, i] + b * m[2, i]) for i in range(3)]
        return torch.stack(parts, 1)


@torch.compiler.disable
def warp(tiles, lattice):
    return F.grid_sample(tiles, lattice, mode="bilinear", padding_mode="reflection", align_corners=True)


class StainBank(nn.Module):
    def __init__(self):
        super().__init__()
        self.unmix = Unmix(STAINS)
        self.gain = nn.Parameter(torch.tensor([1.1, 0.9, 1.0]).view(1, 3, 1, 1))
        self.register_buffer("lattice", identity_lattice())

    def forward(self, tiles, field):
        moved = warp(tiles, self.lattice + field)
        stain = self.unmix(moved) * self.gain
        active = torch.sigmoid((stain - 0.15) * 8.0)
        energy = (stain * active).flatten(2)
        mean = energy.mean(-1)
        spread = (energy - mean.unsqueeze(-1)).square().mean(-1).sqrt()
        return torch.cat([mean, spread, active.flatten(2).mean(-1)], dim=1)


def synthetic_tiles(count, gen):
    axis = torch.linspace(0, 4 * math.pi, TILE)
    phase = torch.rand(count, 3, 1, 1, generator=gen) * 6.0
    waves = torch.sin(axis.view(1, 1, 1, -1) + phase) * torch.cos(axis.view(1, 1, -1, 1) * 0.7 + phase)
    noise = torch.rand(count, 3, TILE, TILE, generator=gen) * 0.1
    return (0.5 + 0.4 * waves + noise).clamp(0.02, 1.0)


def main():
    gen = torch.Generator().manual_seed(9)
    bank = StainBank().eval()
    extract = torch.compile(bank)

    tiles = [synthetic_tiles(TILES_PER_STEP, gen) for _ in range(8)]
    fields = [smooth_field(TILES_PER_STEP, 6, 0.05, gen) for _ in range(8)]

    features = []
    with torch.no_grad():
        for i in range(8):
            extract(tiles[i], fields[i])
        begin = time.perf_counter()
        for step in range(STEPS):
            vec = extract(tiles[step % 8], fields[(step * 3) % 8])
            features.append(vec)
            if step % 700 == 699:
                print(f"{step + 1} steps, feature norm {torch.cat(features).norm(dim=1).mean():.4f}")
        spent = time.perf_counter() - begin
    print(f"bank of {sum(len(f) for f in features)} tiles, {1e3 * spent / STEPS:.2f} ms per step")


if __name__ == "__main__":
    main()
