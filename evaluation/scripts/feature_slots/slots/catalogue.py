import random

import torch


class Catalogue:
    """One table of item features per category, loaded once."""

    def __init__(self, categories, items, width):
        self.tables = {f"cat{i}": torch.randn(items, width) for i in range(categories)}

    def table(self, name):
        return self.tables[name]


def visitors(count, categories, slots, seed):
    rng = random.Random(seed)
    for _ in range(count):
        mood = rng.randint(2, categories)
        yield [f"cat{rng.randrange(mood)}" for _ in range(slots)]
