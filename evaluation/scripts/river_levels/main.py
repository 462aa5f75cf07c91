"""Forecast the level of rivers a day ahead."""
import argparse

import torch

from rivers.callbacks import BestWeights, Progress, WeightWatch
from rivers.fit import Fitter
from rivers.net import LevelNet


def gauge(stations=24, days=1400):
    t = torch.arange(days) / 365.25
    season = torch.sin(2 * torch.pi * (t + torch.rand(stations, 1)))
    rain = torch.rand(stations, days).pow(6).cumsum(1)
    return season + 0.2 * (rain - rain.roll(9, 1)) + 0.05 * torch.randn(stations, days)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--window", type=int, default=48)
    args = parser.parse_args()
    torch.manual_seed(0)
    fitter = Fitter(LevelNet(args.window), callbacks=[WeightWatch(bins=64), BestWeights(), Progress(every=200)])
    fitter.fit(gauge(), args.window, args.steps)


if __name__ == "__main__":
    main()
