"""The camera maker's filters, as they are delivered: a traced module."""
import torch
import torch.nn as nn


class _Filters(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.near = nn.Parameter(torch.linspace(0.2, 0.8, channels)[:, None, None])
        self.soft = nn.Parameter(torch.linspace(2, 9, channels)[:, None, None])

    def forward(self, depth):
        band = (depth - self.near) * self.soft
        for _ in range(4):
            band = band / (1 + band.abs())
            edge = band.clamp(-0.5, 0.5) * (1 - 0.3 * band.square())
            flat = torch.relu(0.4 - edge.abs()) * torch.relu(1 - band.square())
            band = flat * (1 + 0.1 * edge) - 0.05 * edge.square() + 0.7 * band
        return band


def load_eye(channels, side):
    with torch.no_grad():
        return torch.jit.trace(_Filters(channels).eval(), torch.rand(2, 1, side, side))
