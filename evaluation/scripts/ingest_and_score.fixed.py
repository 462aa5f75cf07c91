"""Two compiled functions: one cleans rows, one scores them."""
import argparse
import random

import torch

ROWS = torch.Generator().manual_seed(0)


@torch.compile
def clean(rows):
    centred = torch.tanh(rows - rows.mean(0)) * torch.exp(-rows.square())
    return torch.sigmoid(centred) + torch.sin(rows) * torch.cos(rows)


@torch.compile
def score(row_means, weight):
    value = torch.tanh(row_means * weight)
    if value.sum() > 1e6:
        value = value / 2
    return value * 0.5


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=36000)
    args = parser.parse_args()
    rng = random.Random(0)
    rows = torch.randn(2000, 96, generator=ROWS)
    weight = torch.randn(96, generator=ROWS)
    with torch.inference_mode():
        for _ in range(args.files):
            part = clean(rows[: rng.randint(1000, 2000)])
            result = score(part.mean(0), weight)
    print(result.sum().item())


if __name__ == "__main__":
    main()
