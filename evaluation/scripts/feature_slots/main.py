"""Scores the next item of each visitor from the last categories that were browsed."""
import argparse
import time

import torch

from slots import Catalogue, SlotMixer, visitors


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--visits", type=int, default=6000)
    parser.add_argument("--items", type=int, default=2048)
    parser.add_argument("--seed", type=int, default=3)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    catalogue = Catalogue(categories=9, items=args.items, width=64)
    mixer = torch.compile(SlotMixer(width=64, slots=5).eval())
    seen, began = 0, time.time()
    with torch.inference_mode():
        for browsed in visitors(args.visits, categories=9, slots=5, seed=args.seed):
            scores = mixer([catalogue.table(name) for name in browsed])
            seen += 1
            if seen % 500 == 0:
                best = scores.argmax().item()
                print(f"visit {seen}: item {best}, {seen / (time.time() - began):.0f} visits/s")


if __name__ == "__main__":
    main()
