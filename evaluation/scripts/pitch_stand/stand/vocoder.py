import torch
import torch.nn as nn

from .phase import straighten


class Vocoder(nn.Module):
    def __init__(self, bins, ratio):
        super().__init__()
        self.ratio, self.peak = ratio, 0.0
        self.register_buffer("tilt", torch.linspace(1.0, 0.4, bins)[:, None])
        self.register_buffer("hop", torch.linspace(0, 3.1, bins)[:, None])

    def forward(self, size, angle):
        loud = torch.log1p(8 * size * self.tilt)
        gate = loud / (loud + 0.3) * torch.rsqrt(1 + size.square())
        path = straighten(angle)
        step = path - self.hop
        turned = (step * self.ratio + 0.1 * torch.sin(step)) * gate
        out = size * gate * (1 - 0.2 * torch.tanh(turned.abs()))
        bands = out.mean(1)
        self.peak = float(bands[:64].amax())
        return out, turned
