import argparse

import torch

from experts import MixtureLayer


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=36000)
    args = parser.parse_args()
    torch.manual_seed(0)
    layer = torch.compile(MixtureLayer().eval())
    data = [torch.randn(512, 64) for _ in range(4)]
    with torch.no_grad():
        for number in range(args.batches):
            y = layer(data[number % 4])
    print(y.mean().item())


if __name__ == "__main__":
    main()
