"""Search binned read-out strips for mirror-symmetric pulse trains.

Each strip is compared with its own reversal after a soft compression; strips
that score high are kept in a small leaderboard together with their position.
"""
import os
import heapq
import time

import numpy as np
import torch

torch.set_num_threads(1)

STEPS = int(os.environ.get("STEPS", "7500"))
STRIPS = 64
BINS = 4096
RING = 6


def simulate_strips(seed: int) -> list[torch.Tensor]:
    rng = np.random.default_rng(seed)
    blocks = []
    for _ in range(RING):
        strips = 0.6 * rng.standard_normal((STRIPS, BINS)).astype(np.float32)
        for row in rng.choice(STRIPS, 6, replace=False):
            where = rng.integers(0, BINS // 2, size=40)
            height = rng.uniform(1.0, 4.0, size=40).astype(np.float32)
            strips[row, where] += height
            strips[row, BINS - 1 - where] += height
        blocks.append(torch.from_numpy(strips))
    return blocks


class Leaderboard:
    def __init__(self, size: int = 8):
        self.size = size
        self.heap: list[tuple[float, int, int]] = []

    def offer(self, score: float, step: int, row: int) -> None:
        item = (score, step, row)
        if len(self.heap) < self.size:
            heapq.heappush(self.heap, item)
        elif item > self.heap[0]:
            heapq.heapreplace(self.heap, item)

    def best(self) -> list[tuple[float, int]]:
        return [(round(s, 5), r) for s, _, r in sorted(self.heap, reverse=True)]


@torch.compile
def blend(strips, reverse):
    return torch.tanh(strips) * reverse


def rate(product: torch.Tensor) -> torch.Tensor:
    return product.mean(dim=1)


def main():
    blocks = simulate_strips(17)
    board = Leaderboard()
    trend = torch.zeros(STRIPS)
    t0 = time.time()
    with torch.no_grad():
        for step in range(STEPS):
            strips = blocks[step % RING]
            scores = rate(blend(strips, torch.flip(strips, (-1,))))
            trend.lerp_(scores, 0.05)
            if step % 25 == 0:
                row = int(scores.argmax())
                board.offer(float(scores[row]), step, row)
            if step % 1500 == 0:
                print(f"{step:6d} trend {trend.max().item():.5f}")
    for score, row in board.best()[:3]:
        print(f"strip {row:3d} score {score:.5f}")
    print(f"trend {trend.sum().item():.5f}  {time.time() - t0:.1f}s")


if __name__ == "__main__":
    main()
