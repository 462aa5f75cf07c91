"""Spreads ship-level forecasts over the containers each ship carries, in several relaxation rounds."""
import os

import torch

STEPS = int(os.environ.get("STEPS", "6000"))
SHIPS, BOXES, DIM, ROUNDS = 4096, 131072, 64, 8
torch.manual_seed(8)


def manifest():
    owner = torch.randint(0, SHIPS, (BOXES,), device="cuda").sort().values
    counts = torch.bincount(owner, minlength=SHIPS)
    return owner, counts


def spread(ship, counts, box):
    return torch.repeat_interleave(ship, counts, dim=0, output_size=box.shape[0])


def gather_back(box, owner, counts):
    total = torch.zeros(SHIPS, DIM, device=box.device).index_add(0, owner, box)
    return total / counts.clamp_min(1).unsqueeze(1)


@torch.compile
def relax(ship, box, owner, counts):
    for turn in range(ROUNDS):
        own = spread(ship, counts, box)
        gate = torch.sigmoid(own - box)
        box = box + 0.3 * gate * (own - box) - 0.01 * box.pow(3)
        box = torch.tanh(box) + 0.05 * torch.sin(own)
        ship = 0.8 * ship + 0.2 * gather_back(box, owner, counts)
        ship = ship / (1.0 + 0.1 * ship.square().mean(1, keepdim=True))
    return ship, box


@torch.no_grad()
def main():
    owner, counts = manifest()
    ship = torch.randn(SHIPS, DIM, device="cuda")
    box = torch.randn(BOXES, DIM, device="cuda")
    wind = torch.randn(SHIPS, 1, device="cuda")
    for step in range(STEPS):
        ship, box = relax(ship, box, owner, counts)
        ship = ship + 0.05 * wind
        if step % 1000 == 0:
            print("day", step, "ship", round(ship.mean().item(), 5), "box", round(box.std().item(), 5))


main()
