"""A bin-picking cell: depth images in, grasps out."""
import argparse
import collections

import torch

from policy import Picker, PickerConfig


class Cell:
    def __init__(self, picker, keep=50):
        self.picker = torch.compile(picker)
        self.grasps = collections.deque(maxlen=keep)

    @torch.no_grad()
    def tick(self, depth):
        self.grasps.append(self.picker(depth))


def camera(side, bins=4, seed=12):
    draw = torch.Generator().manual_seed(seed)
    views = torch.rand(10, bins, 1, side, side, generator=draw)
    while True:
        yield from views


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ticks", type=int, default=8000)
    args = parser.parse_args()
    torch.manual_seed(0)
    config = PickerConfig()
    cell = Cell(Picker(config).eval())
    for tick, depth in zip(range(args.ticks), camera(config.side)):
        cell.tick(depth)
        if tick % 1000 == 999:
            print(tick + 1, torch.stack(tuple(cell.grasps)).mean().item())


if __name__ == "__main__":
    main()
