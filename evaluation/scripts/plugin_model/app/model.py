import torch
from torch import nn

from vendor_layers import CheckedNorm


class Tower(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.norm = CheckedNorm(width)
        self.scale = nn.Parameter(torch.randn(width))

    def forward(self, x):
        h = torch.tanh(x * self.scale) + torch.sin(x) * torch.exp(-x.square())
        h = self.norm(h)
        h = torch.sigmoid(h) * torch.cos(h) + torch.erf(h)
        return h * self.gain(h)

    @staticmethod
    def gain(h):
        return 1.0 / (1.0 + float(h.std()))
