import torch
from torch import nn

from .detect import adaptive_floor, require_target
from .errors import Jammed, NoTarget


class Chain(nn.Module):
    """From the two channels of the receiver to a picture of the sector."""

    def __init__(self, gates, pulses=256, factor=1.8):
        super().__init__()
        self.window = nn.Parameter(torch.hann_window(gates))
        self.slope = nn.Parameter(torch.linspace(0.5, 2.5, gates))
        self.drift = nn.Parameter(torch.randn(pulses, 1) * 0.1)
        self.factor = factor

    def forward(self, real, imaginary):
        try:
            angle = torch.atan2(imaginary, real) - self.slope * self.drift
            size = torch.sqrt(real.square() + imaginary.square() + 1e-6) * self.window
            i, q = size * torch.cos(angle), size * torch.sin(angle)
            power = torch.log1p(i.square() + q.square())
            above = require_target(power, adaptive_floor(power, self.factor))
            soft = torch.sigmoid(4 * (power - power.mean())) * torch.exp(-self.drift.square())
            return torch.where(above, torch.tanh(soft * size), torch.zeros_like(soft))
        except NoTarget:
            return torch.zeros_like(real)
        except Jammed:
            return torch.ones_like(real)
