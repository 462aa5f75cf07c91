import torch

from .relax import relax


class Channel:
    def __init__(self, rows, columns):
        self.pressure = torch.zeros(rows, columns)
        self.load = torch.randn(rows, columns) * 0.1
        self.roughness = torch.rand(rows, columns)
        self.sweeps = 0

    def step(self):
        self.load = torch.roll(self.load, 1, dims=1)
        self.pressure, self.sweeps = relax(0.5 * self.pressure, self.load, self.roughness)
