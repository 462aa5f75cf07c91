"""Next-token scores for several customers at once, each row of the batch with its own adapter."""
import argparse
import time

import torch

from bank import Batcher, BankedModel


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=5000)
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--customers", type=int, default=24)
    args = parser.parse_args()
    torch.manual_seed(5)
    model = BankedModel(vocabulary=200, width=64, customers=args.customers, rank=4).eval()
    score = torch.compile(model)
    batcher = Batcher(args.rows, length=96, customers=args.customers, vocabulary=200, seed=5)
    began = time.time()
    with torch.inference_mode():
        for i in range(args.batches):
            best = score(batcher.next()).token
            if i % 250 == 249:
                print(f"batch {i + 1}: token {best[0].item()}, {(i + 1) / (time.time() - began):.0f}/s")


if __name__ == "__main__":
    main()
