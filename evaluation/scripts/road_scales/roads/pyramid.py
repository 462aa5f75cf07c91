"""Looks at a photo in another size each time."""
import torch
import torch.nn.functional as F
from torch import nn


class EdgeBank(nn.Module):
    def __init__(self, kinds=6):
        super().__init__()
        self.mix = nn.Parameter(torch.randn(kinds, 3, 1, 1))
        self.sharp = nn.Parameter(torch.rand(kinds, 1, 1) + 0.5)

    def forward(self, x):
        x = (x.unsqueeze(1) * self.mix).sum(2)
        right = x[..., 1:, 1:] - x[..., 1:, :-1]
        down = x[..., 1:, 1:] - x[..., :-1, 1:]
        size = torch.sqrt(right.square() + down.square() + 1e-4)
        return torch.tanh(self.sharp * size) * torch.exp(-0.1 * size)


class ScaledRoads(nn.Module):
    def __init__(self):
        super().__init__()
        self.edges = EdgeBank()
        self.level = nn.Parameter(torch.tensor(0.4))

    def forward(self, photos, scale):
        seen = F.interpolate(photos, scale_factor=scale, mode="nearest")
        seen = self.edges(seen)
        share = seen.mean((1, 2, 3))
        return share, (share > self.level).nonzero().flatten()
