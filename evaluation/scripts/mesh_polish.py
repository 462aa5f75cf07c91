"""Polishes scanned meshes for clients, each of whom says how many rounds it wants."""
import argparse
import queue
import random
import time
from typing import NamedTuple

import torch


class Job(NamedTuple):
    client: str
    scan: torch.Tensor
    rounds: int


def relax(points, pull):
    middle = (torch.roll(points, 1, 0) + torch.roll(points, -1, 0)) * 0.5
    gap = middle - points
    return points + pull * gap / (1.0 + gap.square().sum(-1, keepdim=True))


@torch.compile
def polish(points, rounds, pull):
    start = points
    for number in range(rounds):
        points = relax(points, pull)
    moved = (points - start).norm(dim=-1)
    quality = torch.stack([moved.mean(), moved.amax(), moved.std()])
    return points, quality.tolist()


class Desk:
    def __init__(self, seed, size):
        self.dice = random.Random(seed)
        torch.manual_seed(seed)
        self.scans = [torch.randn(size, 3) for _ in range(5)]
        self.waiting = queue.Queue()

    def order(self, number):
        self.waiting.put(Job(f"client {number % 7}", self.scans[number % 5], self.dice.randint(1, 16)))

    @torch.no_grad()
    def serve(self):
        job = self.waiting.get()
        return job.client, polish(job.scan, job.rounds, 0.4)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=2500)
    parser.add_argument("--size", type=int, default=40_000)
    args = parser.parse_args()
    desk = Desk(5, args.size)
    start = time.perf_counter()
    for number in range(args.jobs):
        desk.order(number)
        client, (points, quality) = desk.serve()
        if number % 250 == 0:
            print(f"{client}: moved {quality[0]:.4f} ({time.perf_counter() - start:.1f} s)")


if __name__ == "__main__":
    main()
