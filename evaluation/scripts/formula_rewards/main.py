"""Judges recorded walks of a robot by the reward formulas that its designers wrote."""
import argparse
import random

import torch

from shaping.formulas import load
from shaping.judge import Judge


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--judgements", type=int, default=12000)
    parser.add_argument("--walks", type=int, default=2048)
    args = parser.parse_args()
    torch.manual_seed(14)
    rng = random.Random(14)
    formulas = load()
    judge = Judge(length=96)
    state, effort = torch.randn(4, args.walks, 96).movedim(0, -1), torch.randn(args.walks, 96)
    tally = {}
    with torch.no_grad():
        for _ in range(args.judgements):
            name = rng.choice(list(formulas))
            tally[name] = judge.compare(state, effort, formulas[name])
    for name, spread in sorted(tally.items()):
        print(f"{name:12s} {spread:.3f}")


if __name__ == "__main__":
    main()
