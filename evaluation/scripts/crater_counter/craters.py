import torch
import torch.nn as nn
import torch.nn.functional as F


class CraterNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, padding=1)
        self.mix = nn.Conv2d(width, width, 3, padding=1)
        self.rate = nn.Conv2d(width, 1, 1)
        self.slope = nn.Parameter(torch.ones(width, 1, 1))

    def forward(self, tile):
        h = self.stem(tile)
        h = torch.tanh(h) * torch.sigmoid(self.slope * h) + 0.1 * torch.sin(h)
        g = self.mix(h)
        h = h + F.softplus(g) * torch.exp(-0.5 * g * g)
        return F.softplus(self.rate(h)).sum((1, 2, 3))


def survey(tiles, size, seed=0):
    source = torch.Generator().manual_seed(seed)
    while True:
        yield torch.randn(tiles, 1, size, size, generator=source), torch.rand(tiles, generator=source) * 40
