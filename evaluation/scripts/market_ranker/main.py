"""Rank a catalogue for visitors of several shops."""
import argparse
import random

import torch

from ranker import MARKETS, Ranker, visiting


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--visits", type=int, default=16000)
    parser.add_argument("--items", type=int, default=12288)
    args = parser.parse_args()
    torch.manual_seed(0)
    rng = random.Random(1)
    ranker = Ranker(args.items)
    visitors = torch.randn(512, 48)
    shown = torch.zeros(args.items)
    for visit in range(args.visits):
        with visiting(rng.choice(MARKETS)):
            shown[ranker.top(visitors[visit % 512])] += 1
    print("most shown", shown.argmax().item())


if __name__ == "__main__":
    main()
