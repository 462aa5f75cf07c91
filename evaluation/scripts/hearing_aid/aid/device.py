import torch
from torch import nn

from . import clock
from .dither import Dither


class HearingAid(nn.Module):
    def __init__(self, bands=256):
        super().__init__()
        self.dither = Dither()
        self.knee = nn.Parameter(torch.rand(bands) + 0.2)
        self.boost = nn.Parameter(torch.rand(bands) * 2)
        self.lag = nn.Parameter(torch.randn(bands) * 0.1)

    def compress(self, level):
        over = torch.nn.functional.softplus(level - self.knee)
        return torch.exp(-over) * torch.tanh(self.boost * level)

    def forward(self, sound):
        level = torch.log1p(sound.abs() * self.boost) + torch.sin(sound * self.lag)
        level = level * torch.sigmoid(4 * level)
        sound = sound + self.dither.amount() * torch.cos(37 * sound)
        share = clock.settled()
        gain = self.compress(level) * share + (1 - share) * torch.erf(level)
        return torch.tanh(sound * gain) + 0.1 * torch.atan(sound * self.lag)
