import torch
from torch import nn

from .checks import require_finite


class Coupling(nn.Module):
    def __init__(self, size, hidden, swap):
        super().__init__()
        self.swap = swap
        self.net = nn.Sequential(nn.Linear(size // 2, hidden), nn.Tanh(), nn.Linear(hidden, size))

    def forward(self, x):
        a, b = x.chunk(2, dim=-1)
        if self.swap:
            a, b = b, a
        log_scale, shift = self.net(a).chunk(2, dim=-1)
        log_scale = require_finite("log scale", torch.tanh(log_scale))
        b = b * torch.exp(log_scale) + shift
        return torch.cat([b, a] if self.swap else [a, b], dim=-1), log_scale.sum(-1)


class CouplingFlow(nn.Module):
    def __init__(self, size=32, hidden=128):
        super().__init__()
        self.one = Coupling(size, hidden, swap=False)
        self.two = Coupling(size, hidden, swap=True)

    def forward(self, x):
        x, first = self.one(x)
        x, second = self.two(x)
        return x, first + second
