"""Reaction-diffusion picture of crustose lichen on a rock face."""
import os
import time

import torch

small = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = int(os.environ.get("STEPS", 8000))
SIDE = 128 if small else 4096


def laplacian(f):
    return (f.roll(1, 0) + f.roll(-1, 0) + f.roll(1, 1) + f.roll(-1, 1)) * 0.2 \
        + (f.roll((1, 1), (0, 1)) + f.roll((-1, 1), (0, 1))
           + f.roll((1, -1), (0, 1)) + f.roll((-1, -1), (0, 1))) * 0.05 - f


@torch.compile
def grow(water, thallus, moisture, seasons):
    for season in range(seasons):
        uptake = water * thallus * thallus
        feed = 0.035 + 0.01 * moisture
        dw = 0.16 * laplacian(water) - uptake + feed * (1.0 - water)
        dt = 0.08 * laplacian(thallus) + uptake - (feed + 0.06) * thallus
        water = (water + dw).clamp(0.0, 1.0)
        thallus = (thallus + dt * torch.sigmoid(8.0 * (1.2 - thallus))).clamp(0.0, 1.0)
        yield season, water, thallus


def rock_face():
    torch.manual_seed(9)
    water = torch.ones(SIDE, SIDE, device=device)
    thallus = torch.zeros(SIDE, SIDE, device=device)
    spots = torch.randint(4, SIDE - 12, (40, 2)).tolist()
    for y, x in spots:
        thallus[y:y + 8, x:x + 8] = 0.5
        water[y:y + 8, x:x + 8] = 0.4
    moisture = torch.rand(SIDE, SIDE, device=device)
    return water, thallus, moisture


@torch.no_grad()
def main():
    water, thallus, moisture = rock_face()
    began = time.perf_counter()
    for season, water, thallus in grow(water, thallus, moisture, STEPS):
        if season % 800 == 0:
            print(f"season {season:5d} cover {(thallus > 0.2).float().mean().item():.4f} "
                  f"({time.perf_counter() - began:.1f} s)")
    print("final biomass", float(thallus.sum()))


if __name__ == "__main__":
    main()
