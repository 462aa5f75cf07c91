"""Watch the dengue forecasts of all districts for alarms, week by week."""
import argparse
from dataclasses import dataclass, field

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Season:
    districts: int = 400
    weeks: int = 104
    width: int = 4
    depth: int = 5


class Wave(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.size = nn.Parameter(torch.rand(width) * 0.1)
        self.pull = nn.Parameter(torch.ones(width))

    def forward(self, h):
        h = h * (1 - 0.1 * self.pull * h.abs()) + 0.05 * h.square()
        h = F.softsign(h * self.pull) + 0.5 * h
        h = h + self.size * (1 - h.square()).clamp_min(0)
        return h - 0.1 * F.relu(h - 1) + 0.1 * F.relu(-h - 1)


class Epidemic(nn.Module):
    def __init__(self, season):
        super().__init__()
        self.up = nn.Parameter(torch.randn(season.width))
        self.layers = nn.ModuleList(Wave(season.width) for _ in range(season.depth))
        self.down = nn.Parameter(torch.randn(season.width) / season.width)

    def forward(self, cases):
        h = cases[..., None] * self.up
        for layer in self.layers:
            h = layer(h)
        rate = F.softplus((h * self.down).sum(-1))
        worst = rate[:, -1].amax()
        assert worst < 1e4, f"the season of {len(cases)} districts diverged: {worst}"
        return rate


@dataclass
class Watch:
    level: float = 0.9
    ahead: int = 8
    alarms: dict = field(default_factory=dict)

    def look(self, rate):
        for district in range(rate.shape[0]):
            for week in range(-self.ahead, 0):
                value = rate[district, week].item()
                if value > self.level:
                    self.alarms[district] = max(value, self.alarms.get(district, 0.0))


def surveys(season, count=6, seed=14):
    draw = torch.Generator().manual_seed(seed)
    for _ in range(count):
        yield torch.rand(season.districts, season.weeks, generator=draw) * 2


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=4000)
    args = parser.parse_args()
    torch.manual_seed(0)
    season = Season()
    forecast = torch.compile(Epidemic(season).eval())
    watch, kept = Watch(), list(surveys(season))
    with torch.inference_mode():
        for update in range(args.updates):
            watch.look(forecast(kept[update % len(kept)]))
            if update % 500 == 499:
                print(update + 1, "alarms in", len(watch.alarms), "districts")


if __name__ == "__main__":
    main()
