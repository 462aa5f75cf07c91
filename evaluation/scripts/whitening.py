"""Whiten a stream of feature vectors with the inverse root of their running covariance."""
import argparse

import torch


@torch.compile
def whiten(features, covariance):
    size = covariance.shape[-1]
    identity = torch.eye(size)
    scale = covariance.norm()
    y, z = covariance / scale, identity
    for _ in range(6):
        t = 1.5 * identity - 0.5 * (z @ y)
        y, z = y @ t, t @ z
    return features @ z / scale.sqrt()


class Stream:
    def __init__(self, width, rows, seed=0):
        generator = torch.Generator().manual_seed(seed)
        self.mixing = torch.randn(width, width, generator=generator) / width**0.5
        self.blocks = torch.randn(8, rows, width, generator=generator)

    def __iter__(self):
        number = 0
        while True:
            yield self.blocks[number % 8]
            number += 1


@torch.no_grad()
def run(args):
    stream = Stream(args.width, args.rows)
    covariance = torch.eye(args.width)
    for number, block in enumerate(stream):
        if number == args.blocks:
            break
        features = block @ stream.mixing
        covariance = 0.98 * covariance + 0.02 * (features.T @ features) / len(features)
        white = whiten(features, covariance)
    print("rows", white.shape[0], "variance", white.var().item())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=8000)
    parser.add_argument("--rows", type=int, default=512)
    parser.add_argument("--width", type=int, default=320)
    run(parser.parse_args())
