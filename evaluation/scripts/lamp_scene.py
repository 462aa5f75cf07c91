"""Lights a field of moving players by the lamps of a level."""
import argparse
import random
from dataclasses import dataclass

import torch


@dataclass
class Lamp:
    x: float
    y: float
    power: float
    lit: bool = True


class Level:
    def __init__(self, lamps, seed=1):
        rng = random.Random(seed)
        self.name = "harbour"
        self.ambient = 0.05
        self.lamps = [
            Lamp(rng.uniform(-50, 50), rng.uniform(-50, 50), rng.uniform(0.5, 4), rng.random() < 0.9)
            for _ in range(lamps)
        ]


@torch.compile
def illuminate(level, players):
    lamps = torch.tensor([(lamp.x, lamp.y, lamp.power) for lamp in level.lamps if lamp.lit])
    dx = players[:, :1] - lamps[:, 0]
    dy = players[:, 1:] - lamps[:, 1]
    return level.ambient + (lamps[:, 2] / (1 + dx * dx + dy * dy)).sum(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ticks", type=int, default=40000)
    parser.add_argument("--lamps", type=int, default=700)
    parser.add_argument("--players", type=int, default=64)
    args = parser.parse_args()
    torch.manual_seed(8)
    level = Level(args.lamps)
    players = torch.randn(args.players, 2) * 20
    speed = torch.randn(args.players, 2)
    with torch.no_grad():
        for tick in range(args.ticks):
            light = illuminate(level, players)
            players = players + 0.05 * speed * light.unsqueeze(1)
            if tick % 10000 == 0:
                print(f"tick {tick}: brightest {light.max().item():.2f}")


if __name__ == "__main__":
    main()
