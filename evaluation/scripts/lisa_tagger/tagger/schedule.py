import random


class LayerLottery:
    """Trains the head and a few blocks drawn anew every `period` steps; the rest rests."""

    def __init__(self, model, active, period, seed=0):
        self.model, self.active, self.period = model, active, period
        self.rng = random.Random(seed)

    def __call__(self, step):
        if step % self.period:
            return
        chosen = set(self.rng.sample(range(len(self.model.blocks)), self.active))
        for index, block in enumerate(self.model.blocks):
            block.requires_grad_(index in chosen)
