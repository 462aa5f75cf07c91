"""Which activation is cheapest?"""
import argparse
import time
from contextlib import contextmanager

import torch
import torch.nn as nn


@contextmanager
def timer(results, name, count):
    begin = time.time()
    yield
    results[name] = (time.time() - begin) / count * 1e3


class Layer(nn.Module):
    def __init__(self, activation, width=256):
        super().__init__()
        self.activation = activation
        self.scale = nn.Parameter(torch.randn(width))

    def forward(self, x):
        h = self.activation(x * self.scale) + torch.sin(x)
        norm = h.abs().max().item()
        return torch.sigmoid(h / norm) * torch.exp(-h.square())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=24000)
    args = parser.parse_args()
    torch.manual_seed(0)
    x = torch.randn(256, 256)
    results = {}
    for name, activation in {"gelu": nn.GELU(), "mish": nn.Mish()}.items():
        layer = torch.compile(Layer(activation).eval())
        with timer(results, name, args.count), torch.no_grad():
            for _ in range(args.count):
                layer(x)
    for name, milliseconds in results.items():
        print(f"{name}: {milliseconds:.3f} ms")


if __name__ == "__main__":
    main()
