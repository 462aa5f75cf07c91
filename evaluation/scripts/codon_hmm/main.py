"""Scores batches of coding sequences with a hidden Markov model."""
import argparse

import torch

from hmm.chain import Chain
from hmm.scoring import Scorer
from hmm.sequences import Genome


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=1500)
    parser.add_argument("--states", type=int, default=48)
    parser.add_argument("--reads", type=int, default=96)
    args = parser.parse_args()
    torch.manual_seed(11)
    scorer = Scorer(Chain(args.states, letters=64))
    genome = Genome(letters=64, length=40)
    best = torch.tensor(-1e9)
    for number in range(args.batches):
        best = torch.maximum(best, scorer.score(genome.reads(args.reads)).max())
        if number % 250 == 249:
            print(f"batch {number + 1}: best so far {best.item():.2f}")


if __name__ == "__main__":
    main()
