"""Fit Nelson-Siegel-Svensson curves to swap quotes of many days at once."""
import argparse
from typing import NamedTuple

import torch
from torch.func import grad_and_value, vmap


class Quotes(NamedTuple):
    rate: torch.Tensor
    weight: torch.Tensor


MATURITY = torch.cat([torch.arange(1, 12) / 12, torch.arange(1, 54).float()])


def hump(t, scale):
    z = t / scale
    return (1 - torch.exp(-z)) / z


def curve(theta, t):
    level, slope, bow, late, s1, s2 = theta.unbind()
    s1, s2 = torch.nn.functional.softplus(s1) + 0.1, torch.nn.functional.softplus(s2) + 2.0
    first, second = hump(t, s1), hump(t, s2)
    return level + slope * first + bow * (first - torch.exp(-t / s1)) + late * (second - torch.exp(-t / s2))


def misfit(theta, rate, weight):
    error = curve(theta, MATURITY) - rate
    robust = torch.log(torch.cosh(20 * error)) / 20
    return (weight * robust).sum() + 1e-4 * theta.square().sum()


@torch.compile(fullgraph=True)
def descend(theta, speed, quotes, rate):
    gradient, loss = vmap(grad_and_value(misfit))(theta, quotes.rate, quotes.weight)
    gradient = gradient * torch.rsqrt(1 + gradient.square().sum(-1, keepdim=True))
    speed = 0.9 * speed + gradient
    return theta - rate * speed, speed, loss.mean()


def market(days):
    shift = 0.01 * torch.randn(days, 1)
    rate = 0.03 + shift + 0.01 * torch.exp(-MATURITY / 6) + 0.001 * torch.randn(days, len(MATURITY))
    return Quotes(rate, torch.rand(days, len(MATURITY)) + 0.5)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=30000)
    parser.add_argument("--days", type=int, default=1500)
    args = parser.parse_args()
    torch.manual_seed(5)
    quotes = market(args.days)
    theta = torch.tensor([0.03, -0.01, 0.01, 0.01, 1.0, 5.0]).repeat(args.days, 1)
    speed, rate = torch.zeros_like(theta), torch.tensor(0.02)
    for step in range(args.steps):
        theta, speed, loss = descend(theta, speed, quotes, rate)
        if step % 1000 == 0:
            rate.mul_(0.9)
            print(f"step {step}: misfit {loss.item():.6f}")


if __name__ == "__main__":
    main()
