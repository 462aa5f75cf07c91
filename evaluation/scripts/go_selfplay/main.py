"""Plays many games of a simplified Go against itself, with one network for all boards."""
import os

import torch

from go.evaluator import Evaluator
from go.table import Table

MOVES = int(os.environ.get("MOVES", 6000))


def main():
    torch.manual_seed(4)
    table = Table(games=24)
    evaluator = Evaluator(channels=32, depth=4)
    evaluator.warm_up(table.planes())
    for move in range(MOVES):
        policy, value = evaluator(table.planes())
        table.play(policy)
        if move % 1000 == 999:
            print(f"{move + 1} moves, mean value {value.mean().item():+.3f}")


if __name__ == "__main__":
    main()
