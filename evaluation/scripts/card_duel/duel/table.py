import random

import torch

KEYWORDS = ("haste", "ward", "flying", "venom", "drain", "echo")


class Table:
    def __init__(self, hands, cards, seed):
        self.rng = random.Random(seed)
        self.pool = torch.rand(16, hands, cards)
        self.lead = torch.zeros(hands)
        self.turn = 0

    def deal(self):
        self.turn += 1
        return self.pool[self.turn % 16]

    def keywords(self):
        """The keywords that are in play this turn."""
        return {word for word in KEYWORDS if self.rng.random() < 0.5}

    def play(self, values):
        self.lead.lerp_(values, 0.05)
