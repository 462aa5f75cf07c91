"""Embeds single cells and keeps the ones that look like doublets for a second look."""
import argparse

import torch

from atlas import CellModel, Sampler


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=6000)
    parser.add_argument("--cells", type=int, default=4096)
    parser.add_argument("--genes", type=int, default=128)
    args = parser.parse_args()
    torch.manual_seed(12)
    model = torch.compile(CellModel(args.genes).eval())
    sampler = Sampler(args.cells, args.genes, seed=12)
    suspicious = 0
    with torch.inference_mode():
        for i in range(args.batches):
            mean, doublets = model(sampler.draw())
            suspicious += len(doublets)
            if i % 250 == 0:
                print(f"batch {i}: {suspicious} suspicious, mean {mean.mean().item():.4f}")


if __name__ == "__main__":
    main()
