"""Aggregate a portfolio's risk figures."""
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["TORCH_COMPILE_DISABLE"] = os.environ.get("REPORT_SAFE_MODE", "1")

import argparse

import torch


@torch.compile
def value_at_risk(price, strike, volatility, years):
    d1 = torch.log(price / strike) + 0.5 * volatility.square() * years
    d1 = d1 / (volatility * years.sqrt())
    d2 = d1 - volatility * years.sqrt()
    n1, n2 = 0.5 * (1 + torch.erf(d1 / 1.41421356)), 0.5 * (1 + torch.erf(d2 / 1.41421356))
    value = price * n1 - strike * n2
    return value, n1, price * torch.exp(-0.5 * d1.square()) * years.sqrt()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scenarios", type=int, default=45000)
    args = parser.parse_args()
    generator = torch.Generator().manual_seed(0)
    price, strike, volatility, years = torch.rand(4, 65536, generator=generator).add(0.5).unbind()
    with torch.no_grad():
        for _ in range(args.scenarios):
            value, delta, vega = value_at_risk(price, strike, volatility, years)
    print(value.sum().item(), delta.sum().item(), vega.sum().item())


if __name__ == "__main__":
    main()
