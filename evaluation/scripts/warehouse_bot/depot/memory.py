import numpy as np
import torch


class Memory:
    """A ring of what the carts have seen and done."""

    def __init__(self, capacity, seen, seed=0):
        self.rng = np.random.RandomState(seed)
        self.seen = self.rng.standard_normal((capacity, seen)).astype(np.float32)
        self.done = self.rng.randint(0, 12, capacity)
        self.paid = self.rng.standard_normal(capacity).astype(np.float32)
        self.filled = capacity
        self.at = 0

    def put(self, seen, done, paid):
        self.seen[self.at], self.done[self.at], self.paid[self.at] = seen, done, paid
        self.at = (self.at + 1) % self.filled

    def draw(self, size):
        rows = self.rng.choice(self.filled, size, replace=False)
        return (torch.from_numpy(self.seen[rows]), torch.from_numpy(self.done[rows]),
                torch.from_numpy(self.paid[rows]))
