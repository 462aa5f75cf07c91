"""Let a glacier flow over its bed for some centuries (shallow ice)."""
import argparse
from dataclasses import dataclass

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
backend = "inductor" if device == "cuda" else "aot_eager"


@dataclass
class Climate:
    snowline: float = 1400.0
    gradient: float = 0.007
    warmest: float = 1.5


def diffusivity(thick, slope):
    warm = torch.exp(-thick / 900).clamp(0.05, 1)
    return 1e-6 * warm * thick.pow(3) * slope.square() + 0.2 * torch.sigmoid(thick / 20)


class Glacier:
    def __init__(self, side, climate):
        ticks = torch.linspace(-3, 3, side, device=device)
        self.bed = 2200 * torch.exp(-(ticks[:, None].square() + ticks.square()) / 4)
        self.bed = self.bed + 120 * torch.rand(side, side, device=device)
        self.thick = torch.zeros_like(self.bed)
        self.climate = climate

    @torch.compile(backend=backend)
    def year(self, bed, thick):
        surface = bed + thick
        east = surface.roll(-1, 1) - surface
        south = surface.roll(-1, 0) - surface
        slope = torch.sqrt(east.square() + south.square() + 1e-6) / 100
        flow = diffusivity(thick, slope)
        out_east, out_south = flow * torch.tanh(east / 50), flow * torch.tanh(south / 50)
        moved = out_east - out_east.roll(1, 1) + out_south - out_south.roll(1, 0)
        climate = self.climate
        balance = climate.gradient * (surface - climate.snowline)
        balance = torch.where(balance > 0, climate.warmest * torch.tanh(balance / 2), balance)
        return torch.relu(thick + 0.1 * moved + balance)


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--years", type=int, default=8000)
    parser.add_argument("--side", type=int, default=400)
    args = parser.parse_args()
    torch.manual_seed(0)
    glacier = Glacier(args.side, Climate())
    for year in range(1, args.years + 1):
        glacier.thick = glacier.year(glacier.bed, glacier.thick)
        if year % 1000 == 0:
            print(f"year {year}: {glacier.thick.mean().item():.1f} m of ice")


if __name__ == "__main__":
    main()
