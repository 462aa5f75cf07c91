import random

import torch


class PriorityMemory:
    """Sum tree over transitions."""

    def __init__(self, capacity):
        self.capacity = capacity
        self.tree = [0.0] * (2 * capacity)
        self.rows = [None] * capacity
        self.rng = random.Random(5)

    @classmethod
    def recorded(cls, count, features):
        memory = cls(count)
        for slot in range(count):
            memory.rows[slot] = (torch.randn(features), slot % 6, 0.1 * memory.rng.random(), torch.randn(features))
            memory.place(slot, 1.0)
        return memory

    def total(self):
        return self.tree[1]

    def place(self, slot, priority):
        node = slot + self.capacity
        self.tree[node] = priority
        while node > 1:
            node //= 2
            self.tree[node] = self.tree[2 * node] + self.tree[2 * node + 1]

    def find(self, mass):
        node = 1
        while node < self.capacity:
            node *= 2
            if mass > self.tree[node]:
                mass -= self.tree[node]
                node += 1
        return node - self.capacity

    def sample(self, batch):
        slots = [self.find(self.rng.random() * self.total()) for _ in range(batch)]
        states, actions, rewards, later = [], [], [], []
        for slot in slots:
            state, action, reward, after = self.rows[slot]
            states.append((state - state.mean()) / (state.std() + 1e-5))
            later.append((after - after.mean()) / (after.std() + 1e-5))
            actions.append(action)
            rewards.append(reward)
        return (torch.stack(states), torch.tensor(actions), torch.tensor(rewards), torch.stack(later)), slots

    def reweigh(self, slots, errors):
        for slot, error in zip(slots, errors.tolist()):
            self.place(slot, (error + 1e-3) ** 0.6)
