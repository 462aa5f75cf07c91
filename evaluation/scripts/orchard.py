"""Frost-risk scoring for orchard stations; every station packet becomes a small record."""
import os
from collections import namedtuple

import torch
from torch import nn

STEPS = int(os.environ.get("STEPS", "50000"))
STATIONS, HOURS = 320, 96


def as_record(packet):
    """Attribute access instead of string keys."""
    kind = namedtuple("Record", sorted(packet))
    return kind(**packet)


class Risk(nn.Module):
    def __init__(self):
        super().__init__()
        self.tau = nn.Parameter(torch.tensor([0.2, 0.5, 0.9]))
        self.bias = nn.Parameter(torch.zeros(HOURS))

    def dew(self, air, humid):
        h = humid.clamp(0.05, 1.0)
        return air - (1.0 - h) * 20.0 + 0.3 * (1.0 - h) * (1.0 - h) * air

    def forward(self, rec):
        dew = self.dew(rec.air, rec.humid)
        gap = rec.air - dew
        total = torch.zeros_like(gap)
        for tilt in (0.0, 0.15, 0.3):
            cool = (rec.sky - 0.5 + tilt).clamp(min=0.0) * self.tau[0] + 0.1 * gap.abs()
            still = 1.0 / (1.0 + rec.wind * rec.wind * (self.tau[1] + tilt))
            surface = rec.air - 4.0 * cool * still + self.bias
            short = (self.tau[2] - surface).clamp(min=0.0)
            total = total + short * short * still + 0.05 * short * gap.abs()
        return total.mean(-1)


def packets(seed):
    g = torch.Generator().manual_seed(seed)

    def one():
        return {
            "air": torch.randn(STATIONS, HOURS, generator=g) * 3.0 + 1.0,
            "humid": torch.rand(STATIONS, HOURS, generator=g),
            "sky": torch.rand(STATIONS, HOURS, generator=g),
            "wind": torch.rand(STATIONS, HOURS, generator=g) * 4.0,
        }

    bank = [one() for _ in range(5)]
    k = 0
    while True:
        yield bank[k % len(bank)]
        k += 1


class Ranking:
    def __init__(self):
        self.mean = torch.zeros(STATIONS)

    def add(self, risk):
        self.mean.lerp_(risk, 0.02)

    def top(self, n=3):
        return self.mean.topk(n).indices.tolist()


def main():
    torch.manual_seed(0)
    risk = Risk()
    score = torch.compile(risk)
    feed = packets(17)
    ranking = Ranking()
    every = max(1, STEPS // 20)
    with torch.no_grad():
        for step in range(1, STEPS + 1):
            rec = as_record(next(feed))
            ranking.add(score(rec))
            if step % every == 0:
                print(f"step {step}  mean risk {ranking.mean.mean().item():.5f}  worst {ranking.top()}")


if __name__ == "__main__":
    main()
