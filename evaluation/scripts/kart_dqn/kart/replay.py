import random

import torch


class PrioritizedReplay:
    """Moments are drawn in proportion to their priority, by way of a tree of sums."""

    def __init__(self, capacity, power=0.6):
        self.capacity, self.power = capacity, power
        self.sums = [0.0] * (2 * capacity)
        self.moments = [None] * capacity
        self.next = 0

    def extend(self, moments):
        for moment in moments:
            self.moments[self.next] = moment
            self.put(self.capacity + self.next, 1.0)
            self.next = (self.next + 1) % self.capacity

    def put(self, leaf, priority):
        self.sums[leaf] = priority
        while leaf > 1:
            leaf //= 2
            self.sums[leaf] = self.sums[2 * leaf] + self.sums[2 * leaf + 1]

    def find(self, mass):
        node = 1
        while node < self.capacity:
            node *= 2
            if mass > self.sums[node]:
                mass -= self.sums[node]
                node += 1
        return node

    def sample(self, batch):
        part = self.sums[1] / batch
        leaves = [self.find((i + 0.98 * random.random()) * part) for i in range(batch)]
        picked = [self.moments[leaf - self.capacity] for leaf in leaves]
        return leaves, [torch.stack(column) for column in zip(*picked)]

    def reweigh(self, leaves, surprise):
        for leaf, size in zip(leaves, surprise):
            self.put(leaf, (size + 1e-3) ** self.power)
