"""Skirmishes of two squads in lockstep; how many units there are changes from skirmish to skirmish."""
import argparse
import random

import torch

from clash.battle import BattleField
from clash.boost import boosted


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--skirmishes", type=int, default=6000)
    parser.add_argument("--seed", type=int, default=2)
    args = parser.parse_args()

    dice = random.Random(args.seed)
    torch.manual_seed(args.seed)
    field = BattleField()
    clash = boosted(field.clash)
    for number in range(args.skirmishes):
        reds, blues = dice.randint(150, 600), dice.randint(150, 600)
        health, stamp = clash(torch.rand(reds, 3), torch.rand(blues, 3), torch.rand(reds))
        if number % 300 == 299:
            print(f"skirmish {number + 1}: stamp {stamp:08x}, {health.mean().item():.2f} left")


if __name__ == "__main__":
    main()
