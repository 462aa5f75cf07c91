"""Recover the glaze of old tiles from photographs under several lamps, a few of its maps at a time."""
import argparse
import itertools
import random

import torch

from glaze.fit import Fitter

MAPS = ("albedo", "rough", "metal", "bump")


def plans(count, seed=3):
    """Which maps are fitted in each stage."""
    every = [some for n in range(1, 5) for some in itertools.combinations(MAPS, n)]
    draw = random.Random(seed)
    for _ in range(count):
        yield draw.choice(every)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stages", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--side", type=int, default=320)
    args = parser.parse_args()
    torch.manual_seed(0)
    fitter = Fitter({name: torch.rand(args.side, args.side) for name in MAPS})
    photos = torch.rand(2, args.side, args.side)
    for n, chosen in enumerate(plans(args.stages)):
        loss = fitter.stage(chosen, photos, args.steps)
        if n % 100 == 0:
            print(f"stage {n}: {'+'.join(chosen)} {loss:.4f}")


if __name__ == "__main__":
    main()
