"""Forecast the speeds of the next hour at the sensors of a city's roads, all day long."""
import argparse

import torch

from roads import TrafficNet, road_graph


def readings(count, sensors, steps=12, seed=5):
    draw = torch.Generator().manual_seed(seed)
    days = [30 + 10 * torch.randn(sensors, steps, generator=draw) for _ in range(6)]
    for n in range(count):
        yield (days[n % len(days)] - 30) / 10


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ticks", type=int, default=6000)
    parser.add_argument("--sensors", type=int, default=2500)
    args = parser.parse_args()
    torch.manual_seed(0)
    net = TrafficNet(road_graph(args.sensors, reach=2)).eval()
    forecast = torch.compile(net)
    slowest = torch.full((args.sensors,), 100.0)
    with torch.inference_mode():
        for n, speeds in enumerate(readings(args.ticks, args.sensors), 1):
            ahead = forecast(speeds)
            slowest = torch.minimum(slowest, ahead.amin(1))
            if n % 500 == 0:
                print(f"tick {n}: slowest {slowest.min().item():.2f}")


if __name__ == "__main__":
    main()
