import random

import torch


class NeighbourSampler:
    """Yields a few hundred nodes with eight neighbours each."""

    def __init__(self, nodes=4000, seed=0):
        self.random = random.Random(seed)
        self.neighbours = torch.randint(nodes, (nodes, 8))

    def __iter__(self):
        while True:
            count = self.random.randrange(300, 700, 7)
            start = self.random.randrange(len(self.neighbours) - count)
            yield self.neighbours[start : start + count]
