import numpy as np


class Dither:
    def __init__(self, bits=16, seed=0):
        self.step = 2.0 ** (1 - bits)
        self.random = np.random.default_rng(seed)

    def amount(self):
        return self.step * self.random.uniform(0.5, 1.5)
