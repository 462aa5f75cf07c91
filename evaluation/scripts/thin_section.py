"""Interference colours of a rock thin section turned between crossed polars (Jones vectors, pixel by pixel)."""
import math
import os

import torch

SIDE, BANDS = 96, 9
WAVES = torch.linspace(430.0, 670.0, BANDS)
MINERALS = {
    "quartz": (0.009, 1.00),
    "olivine": (0.036, 0.97),
    "biotite": (0.045, 0.55),
    "plagioclase": (0.011, 0.99),
    "augite": (0.026, 0.88),
}


def grains():
    """Voronoi fabric: mineral of each pixel, its optic direction and a wavy thickness."""
    seeds = torch.rand(140, 2)
    axis = torch.linspace(0, 1, SIDE)
    grid = torch.stack(torch.meshgrid(axis, axis, indexing="ij"), -1).view(-1, 2)
    owner = torch.cdist(grid, seeds).argmin(1)
    table = torch.tensor(list(MINERALS.values()))
    kind = torch.randint(0, len(MINERALS), (140,))[owner]
    angle = (math.pi * torch.rand(140))[owner]
    thick = 3.0e4 * (1 + 0.08 * torch.sin(9 * grid[:, 0]) * torch.cos(7 * grid[:, 1]))
    return table[kind, 0], table[kind, 1], angle, thick


@torch.compile
def view(stage, biref, clear, angle, thick, waves):
    """Light through polariser, grain, gypsum plate and analyser for one stage position."""
    theta = (angle + stage).unsqueeze(1)
    delta = math.pi * biref.unsqueeze(1) * thick.unsqueeze(1) / waves
    phase = torch.exp(1j * delta)
    c, s = torch.cos(theta), torch.sin(theta)
    fast, slow = c * phase, s * phase.conj() * clear.unsqueeze(1)
    east = fast * c + slow * s
    north = fast * s - slow * c
    gypsum = torch.exp(1j * (math.pi * 550.0 / waves))
    ne, nw = (east + north) * gypsum, (east - north) * gypsum.conj()
    crossed = 0.5 * (ne - nw)
    return crossed.abs().square() * torch.exp(-0.1 * crossed.abs())


def to_rgb(spectrum):
    red = torch.exp(-(((WAVES - 605) / 40) ** 2))
    green = torch.exp(-(((WAVES - 545) / 40) ** 2))
    blue = torch.exp(-(((WAVES - 460) / 30) ** 2))
    eye = torch.stack((red, green, blue), 1)
    return (spectrum @ (eye / eye.sum(0))).clamp(0, 1)


def main():
    steps = int(os.environ.get("STEPS", "240"))
    torch.manual_seed(1888)
    biref, clear, angle, thick = grains()
    brightest = torch.zeros(SIDE * SIDE, 3)
    with torch.no_grad():
        for n in range(steps):
            stage = torch.tensor(2 * math.pi * n / 360)
            picture = to_rgb(view(stage, biref, clear, angle, thick, WAVES))
            brightest = torch.maximum(brightest, picture)
    print(f"{steps} stage positions, mean RGB {[round(v, 3) for v in brightest.mean(0).tolist()]}")


if __name__ == "__main__":
    main()
