import argparse

import torch

from app.model import Tower


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iters", type=int, default=45000)
    args = parser.parse_args()
    torch.manual_seed(0)
    tower = torch.compile(Tower().eval())
    x = torch.randn(256, 256)
    with torch.no_grad():
        for _ in range(args.iters):
            y = tower(x)
    print(y.mean().item())


if __name__ == "__main__":
    main()
