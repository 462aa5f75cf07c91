"""Inference of a head that is one large matrix product after another."""
import argparse

import torch
from torch import nn


def build(width, depth):
    return nn.Sequential(*(nn.Linear(width, width) for _ in range(depth)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iters", type=int, default=8000)
    parser.add_argument("--width", type=int, default=768)
    args = parser.parse_args()
    torch.manual_seed(0)
    head = torch.compile(build(args.width, 3).eval())
    x = torch.randn(256, args.width)
    with torch.inference_mode():
        for _ in range(args.iters):
            y = head(x)
    print("checksum", y.sum().item())


if __name__ == "__main__":
    main()
