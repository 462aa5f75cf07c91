"""Solve Kepler's equation for many orbits with Newton's method."""
import argparse

import torch


@torch.compile
def eccentric_anomaly(mean, eccentricity, tolerance=1e-5, most=4):
    e = mean + eccentricity * torch.sin(mean)
    for _ in range(most):
        f = e - eccentricity * torch.sin(e) - mean
        step = f / (1 - eccentricity * torch.cos(e))
        e = e - step
    return e


def positions(e, eccentricity):
    return torch.cos(e) - eccentricity, (1 - eccentricity.square()).sqrt() * torch.sin(e)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=60000)
    parser.add_argument("--orbits", type=int, default=32768)
    args = parser.parse_args()
    torch.manual_seed(0)
    eccentricity = torch.rand(args.orbits) * 0.6
    rate = torch.rand(args.orbits) * 0.1
    mean = torch.rand(args.orbits) * 6.28
    with torch.no_grad():
        for _ in range(args.epochs):
            mean = torch.remainder(mean + rate, 6.2831853)
            e = eccentric_anomaly(mean, eccentricity)
    x, y = positions(e, eccentricity)
    print(x.mean().item(), y.mean().item())


if __name__ == "__main__":
    main()
