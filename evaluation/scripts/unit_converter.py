"""Normalise measurements that come in many units."""
import argparse
import itertools

import torch

UNITS = {
    "m": 1.0, "cm": 0.01, "mm": 0.001, "km": 1000.0, "in": 0.0254, "ft": 0.3048,
    "yd": 0.9144, "mi": 1609.34, "nmi": 1852.0, "um": 1e-6, "dm": 0.1, "pm": 1e-12,
}


@torch.compile
def normalise(values, unit):
    metres = values * UNITS[unit]
    z = (metres - metres.mean(-1, keepdim=True)) / (metres.std(-1, keepdim=True) + 1e-12)
    return torch.tanh(z) + torch.sin(z) * torch.exp(-z.square()) + torch.log1p(z.abs())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=60000)
    args = parser.parse_args()
    torch.manual_seed(0)
    values = torch.rand(128, 512)
    with torch.no_grad():
        for unit in itertools.islice(itertools.cycle(UNITS), args.batches):
            z = normalise(values, unit)
    print(z.mean().item())


if __name__ == "__main__":
    main()
