"""Firing simulation for a shelf of glazed tiles.

Each pixel of the glaze carries three phases (raw oxide, melt, crystal).  The kiln
controller raises the temperature a little on every tick; reaction rates follow
Arrhenius laws with per-pixel activation energies measured on the biscuit.
"""
import os
import time

import torch
from torch import nn

device = "cuda"
TILES = 40
HEIGHT = 1024
WIDTH = 1024
TICKS = int(os.environ.get("STEPS", "3500"))
REPORT_EVERY = 500
GAS = 8.314e-3  # kJ / (mol K)


class Biscuit(nn.Module):
    """Fixed material properties of the fired clay below the glaze."""

    def __init__(self, tiles, height, width, generator):
        super().__init__()
        shape = (tiles, height, width)
        melt = 58.0 + 6.0 * torch.rand(shape, generator=generator)
        grow = 71.0 + 4.0 * torch.rand(shape, generator=generator)
        self.register_buffer("melt_energy", melt)
        self.register_buffer("growth_energy", grow)


class GlazeKiln(nn.Module):
    def __init__(self, biscuit, start=320.0, ramp=0.22, dt=0.05):
        super().__init__()
        self.biscuit = biscuit
        self.start = start
        self.ramp = ramp
        self.dt = dt
        self.melt_rate = nn.Parameter(torch.tensor(900.0), requires_grad=False)
        self.growth_rate = nn.Parameter(torch.tensor(2400.0), requires_grad=False)
        self.register_buffer("tick", torch.zeros((), dtype=torch.int64))

    def temperature(self):
        return self.start + self.ramp * self.tick

    def forward(self, oxide, melt, crystal):
        self.tick += 1
        thermal = GAS * self.temperature()

        k_melt = self.melt_rate * torch.exp(-self.biscuit.melt_energy / thermal)
        k_grow = self.growth_rate * torch.exp(-self.biscuit.growth_energy / thermal)

        saturation = melt / (0.15 + melt)
        nucleation = torch.sigmoid(12.0 * (crystal - 0.05)) + 0.02
        melted = k_melt * oxide * (1.0 - 0.4 * crystal)
        grown = k_grow * saturation * nucleation * (1.0 - crystal)
        dissolved = 0.03 * k_melt * crystal * torch.tanh(3.0 * oxide)

        oxide = (oxide - self.dt * melted).clamp(0.0, 1.0)
        melt = (melt + self.dt * (melted + dissolved - grown)).clamp(0.0, 1.0)
        crystal = (crystal + self.dt * (grown - dissolved)).clamp(0.0, 1.0)
        total = oxide + melt + crystal + 1e-6
        return oxide / total, melt / total, crystal / total


def glossiness(melt, crystal):
    surface = melt * (1.0 - crystal)
    return surface.mean(dim=(1, 2))


def fresh_shelf(generator):
    shape = (TILES, HEIGHT, WIDTH)
    oxide = 0.9 + 0.05 * torch.rand(shape, generator=generator)
    melt = 0.02 * torch.rand(shape, generator=generator)
    crystal = 1.0 - oxide - melt
    return [t.to(device) for t in (oxide, melt, crystal)]


@torch.no_grad()
def main():
    generator = torch.Generator().manual_seed(41)
    kiln = GlazeKiln(Biscuit(TILES, HEIGHT, WIDTH, generator)).to(device)
    oxide, melt, crystal = fresh_shelf(generator)
    advance = torch.compile(kiln)

    torch.cuda.synchronize()
    began = time.perf_counter()
    for tick in range(1, TICKS + 1):
        oxide, melt, crystal = advance(oxide, melt, crystal)
        if tick % REPORT_EVERY == 0:
            gloss = glossiness(melt, crystal)
            torch.cuda.synchronize()
            pace = (time.perf_counter() - began) / REPORT_EVERY
            print(
                f"tick {tick:5d}  T={float(kiln.temperature()):7.1f} K  "
                f"gloss {gloss.min().item():.4f}..{gloss.max().item():.4f}  "
                f"{1e3 * pace:.2f} ms/tick"
            )
            began = time.perf_counter()

    print("crystal fraction per tile:", [round(v, 4) for v in crystal.mean(dim=(1, 2)).tolist()])


if __name__ == "__main__":
    main()
