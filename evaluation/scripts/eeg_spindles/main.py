"""Find sleep spindles in recordings of a night; every stretch between two movements has its own length."""
import os

import torch

from sleep.nights import stretches
from sleep.scorer import SpindleScorer

STRETCHES = int(os.environ.get("STRETCHES", 6000))


def main():
    torch.manual_seed(0)
    scorer = torch.compile(SpindleScorer(channels=24, stages=5).eval())
    tally = torch.zeros(5)
    with torch.inference_mode():
        for number, (signal, stages) in enumerate(stretches(STRETCHES, channels=24)):
            density, share = scorer(signal, stages)
            tally[: len(share)] += share
            if number % 400 == 399:
                print(f"stretch {number + 1}: density {density.mean().item():.3f}, stages {tally.tolist()}")


if __name__ == "__main__":
    main()
