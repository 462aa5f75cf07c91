"""A box of argon under a learned pair potential."""
import argparse
import configparser
from pathlib import Path

import torch

from box.energy import Mover, PairEnergy
from box.neighbours import near_pairs


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=3000)
    args = parser.parse_args()
    config = configparser.ConfigParser()
    config.read(Path(__file__).with_name("argon.ini"))
    atoms, side = config.getint("box", "atoms"), config.getfloat("box", "side")
    reach, room = config.getfloat("pairs", "reach"), config.getint("pairs", "room")
    torch.manual_seed(3)
    mover = Mover(PairEnergy().requires_grad_(False), side)
    move = torch.compile(mover)
    places, speed = torch.rand(atoms, 3) * side, torch.randn(atoms, 3)
    for step in range(args.steps):
        pairs, mask = near_pairs(places, side, reach, room)
        places, speed = move(places.requires_grad_(True), speed, pairs, mask)
        if step % 200 == 0:
            print(f"{step}: {speed.square().mean().item():.3f}")


if __name__ == "__main__":
    main()
