import torch
from torch import nn


class Rotary(nn.Module):
    """Turns pairs of channels by their place; the tables are as long as the longest text so far."""

    def __init__(self, width, start=32, base=10000.0):
        super().__init__()
        self.register_buffer("speed", base ** (-torch.arange(0, width, 2) / width), persistent=False)
        self._extend(start)

    def _extend(self, length):
        self.longest = length
        angles = torch.arange(length)[:, None] * self.speed
        self.cos, self.sin = angles.cos(), angles.sin()

    def forward(self, x):
        length = x.shape[1]
        if length > self.longest:
            self._extend(length)
        cos, sin = self.cos[:length, None], self.sin[:length, None]
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)
