import torch
import torch.nn as nn

from .scope import MARKETS, scope


class Localised:
    """What differs from shop to shop."""

    def __init__(self):
        self.margins = {name: 1.0 + 0.02 * i for i, name in enumerate(MARKETS)}

    @property
    def margin(self):
        return self.margins[scope.market]


class Affinity(nn.Module):
    def __init__(self, items, width=48):
        super().__init__()
        self.items = nn.Parameter(torch.randn(items, width))
        self.mix = nn.Parameter(torch.randn(width))
        self.local = Localised()

    def forward(self, visitor):
        near = torch.exp(-0.05 * (self.items - visitor).square())
        h = torch.tanh(self.items * visitor) * near + torch.sin(self.items * self.mix)
        h = h * torch.sigmoid(visitor + h) / (1.0 + h.abs())
        return h.mean(-1) * self.local.margin


class Ranker:
    def __init__(self, items):
        self.affinity = torch.compile(Affinity(items).eval())

    @torch.no_grad()
    def top(self, visitor, count=10):
        return self.affinity(visitor).topk(count).indices
