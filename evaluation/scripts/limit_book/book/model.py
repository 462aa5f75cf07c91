import torch
from torch import nn


class MoveNet(nn.Module):
    def __init__(self, levels, width=64):
        super().__init__()
        self.read = nn.Linear(4 * levels, width)
        self.gate = nn.Linear(width, 2 * width)
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, 3)

    def forward(self, levels):
        h = torch.asinh(self.read(levels))
        a, b = self.gate(self.norm(h)).chunk(2, -1)
        return self.out(h + torch.sigmoid(a) * torch.tanh(b))
