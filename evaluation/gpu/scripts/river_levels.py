"""Forecasts river levels; every batch of readings is cleaned as it comes."""

import argparse
import random

import torch
import torch.nn as nn

GAUGES = 64


def readings(rng: random.Random) -> list[list[float]]:
    return [[rng.gauss(2.0, 0.4) for _ in range(GAUGES)] for _ in range(96)]


def cleaned(rows: list[list[float]]) -> list[list[float]]:
    """Without spikes: what is far from its row's middle is set to the middle."""
    kept = []
    for row in rows:
        ordered = sorted(row)
        middle = ordered[len(ordered) // 2]
        spread = ordered[3 * len(ordered) // 4] - ordered[len(ordered) // 4]
        kept.append([v if abs(v - middle) < 2 * spread else middle for v in row])
    return kept


class Forecaster(nn.Module):
    def __init__(self, width: int = 1024) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            nn.Linear(GAUGES, width), nn.GELU(), nn.LayerNorm(width),
            nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width), nn.Linear(width, GAUGES),
        )  # fmt: skip

    def forward(self, levels: torch.Tensor) -> torch.Tensor:
        return levels + self.inner(levels)


class Trainer:
    def __init__(self) -> None:
        self.model = Forecaster().cuda()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, fused=True)
        self.forward = torch.compile(self.model)
        self.days = [readings(random.Random(day)) for day in range(20)]

    def batch(self, step: int) -> torch.Tensor:
        return torch.tensor(cleaned(self.days[step % len(self.days)]), device="cuda")

    def step(self, number: int) -> torch.Tensor:
        levels = self.batch(number)
        loss = (self.forward(levels[:-1]) - levels[1:]).square().mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100_000)
    args = parser.parse_args()
    torch.manual_seed(0)
    trainer = Trainer()
    for number in range(args.steps):
        loss = trainer.step(number)
    print(loss.item())


if __name__ == "__main__":
    main()
