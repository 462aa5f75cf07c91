"""An ensemble of shocks: Burgers' equation from random starts."""
import argparse

import torch

from schemes import make


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=9000)
    parser.add_argument("--scheme", default="upwind2")
    args = parser.parse_args()
    torch.manual_seed(3)
    scheme = make(args.scheme, cells=1024)
    u = scheme.start(members=192)
    for _ in range(args.steps):
        u = scheme.advance(u)
    print("time", f"{scheme.time:.3f}", "energy", u.square().mean().item())


if __name__ == "__main__":
    main()
