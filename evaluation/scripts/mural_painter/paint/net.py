import torch
from torch import nn

from .schedule import STRENGTH


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix = nn.Linear(width, width)
        self.wave = nn.Parameter(torch.rand(width))

    def forward(self, x, strength):
        h = (self.mix(x) * strength * self.wave).clamp(-2, 2)
        square = h * h
        curl = h * (27 + square) / (27 + 9 * square)
        wash = (1 - square / 4) * (1 - square / 16) * self.wave + 0.1 * curl
        edge = (curl * wash - 0.2 * h).clamp(-1, 1) * (3 - 4 * curl * curl)
        grain = 0.05 * (edge * edge - wash * curl) * (1 + h).clamp_min(0)
        return x + (curl * wash + 0.3 * edge + grain) * (1 - strength / 2)


class MuralNet(nn.Module):
    def __init__(self, width=32, layers=3):
        super().__init__()
        self.layers = nn.ModuleList([Layer(width) for _ in range(layers)])
        self.out = nn.Linear(width, width)

    def forward(self, x, t):
        strength = STRENGTH[t]
        for layer in self.layers:
            x = layer(x, strength)
        return self.out(x)
