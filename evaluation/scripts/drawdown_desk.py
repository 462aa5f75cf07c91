"""Ranks thousands of simulated portfolios by how deep they fall below their best day."""
import json
import os
import time
from dataclasses import dataclass

import torch


@dataclass
class Desk:
    days: int = 252
    funds: int = 1500
    tilt: float = 0.3


SETTINGS = json.loads(os.environ.get("DESK", "{}"))
ROUNDS = int(os.environ.get("DESK_ROUNDS", "4000"))


class Drawdowns:
    def __init__(self, desk):
        self.desk = desk
        self.rate = torch.compile(self.rate_paths)

    def rate_paths(self, returns, weight):
        wealth = 1.0 + (returns * weight).clamp(-0.5, 0.5)
        peak = torch.cummax(wealth, dim=1).values
        fall = (peak - wealth) / peak
        pain = torch.sqrt((fall * fall).mean(1))
        edge = wealth[:, -1] - 1.0
        return edge / (pain + 1e-3), fall.amax(1)

    @torch.inference_mode()
    def run(self, rounds):
        desk = self.desk
        torch.manual_seed(8)
        books = [torch.randn(desk.funds, desk.days) * 0.2 for _ in range(4)]
        weight = torch.full((desk.funds, 1), desk.tilt)
        start = time.perf_counter()
        for number in range(rounds):
            ratio, deepest = self.rate(books[number % 4], weight)
            weight = 0.95 * weight + 0.05 * torch.sigmoid(ratio).unsqueeze(1)
            if number % 500 == 499:
                print(f"round {number + 1}: deepest {deepest.max():.3f}, ratio {ratio.mean():.3f}")
        print(f"{rounds} rounds in {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    Drawdowns(Desk(**SETTINGS)).run(ROUNDS)
