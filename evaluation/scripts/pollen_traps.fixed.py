"""Sort airborne pollen by the light they scatter: twenty-four detector rings, one laser pulse per grain."""
import math
import os

import torch
import torch.nn as nn

RINGS, TAXA, BATCH = 24, 17, 192


class ScatterSorter(nn.Module):
    """Ring amplitudes to taxa, with a residual trunk."""

    def __init__(self, width=384, depth=3):
        super().__init__()
        self.entry = nn.Linear(RINGS, width)
        self.trunk = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.taxa = nn.Linear(width, TAXA)

    def forward(self, rings):
        h = torch.tanh(self.entry(rings))
        for norm, layer in zip(self.norms, self.trunk):
            h = h + nn.functional.gelu(layer(norm(h)))
        return self.taxa(h).softmax(-1)


class TrapStation:
    """A roof-top trap; keeps a running count for the two-hourly bulletin."""

    def __init__(self, seed):
        torch.manual_seed(seed)
        self.precision = torch.bfloat16
        sorter = ScatterSorter().eval().to(self.precision)
        self.sorter = torch.compile(sorter)
        self.count = torch.zeros(TAXA)
        self.unsure = 0.0

    @torch.inference_mode()
    def sample(self, rings):
        share = self.sorter(rings.to(self.precision)).float()
        best, taxon = share.max(1)
        sure = best > 0.06
        self.count += torch.bincount(taxon[sure], minlength=TAXA)
        self.unsure += float((~sure).sum())


def pulses(hour):
    """Lorenz-Mie-like ring amplitudes; sizes drift through the day."""
    size = 18.0 + 6.0 * math.sin(hour / 40.0) + 5.0 * torch.rand(BATCH, 1)
    ring = torch.linspace(0.02, 1.2, RINGS)
    lobes = torch.cos(size * ring).abs() * torch.exp(-1.4 * ring)
    ridges = 0.05 * torch.sin(40 * ring + 6.28 * torch.rand(BATCH, 1))
    return lobes + ridges + 0.01 * torch.randn(BATCH, RINGS)


def bulletin(station, hours):
    total = station.count.sum().clamp_min(1)
    top = int(station.count.argmax())
    return f"{hours} samples: {int(total)} grains named, taxon {top} leads with {station.count[top] / total:.2f}, {station.unsure:.0f} unsure"


def main():
    steps = int(os.environ.get("STEPS", "240"))
    station = TrapStation(seed=64)
    for hour in range(steps):
        station.sample(pulses(hour))
    print(bulletin(station, steps))


if __name__ == "__main__":
    main()
