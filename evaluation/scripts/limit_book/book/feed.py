import random
from dataclasses import dataclass


@dataclass(slots=True)
class Order:
    number: int
    buy: bool
    price: int
    size: int


class Feed:
    """Orders that arrive around a price that wanders."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.price, self.number = 10_000, 0

    def __iter__(self):
        return self

    def __next__(self):
        self.number += 1
        self.price += self.random.choice((-1, 0, 0, 0, 1))
        buy = self.random.random() < 0.5
        away = int(self.random.expovariate(0.25)) - 2
        return Order(self.number, buy, self.price - away if buy else self.price + away, self.random.randint(1, 9))
