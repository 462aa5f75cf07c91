import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm


class Gated(nn.Module):
    def __init__(self, width, reach):
        super().__init__()
        self.reach = reach
        self.mix = weight_norm(nn.Linear(3 * width, 2 * width))
        self.scale = nn.Parameter(torch.full((width,), 0.3))

    def forward(self, x):
        around = torch.cat([x.roll(self.reach, 1), x, x.roll(-self.reach, 1)], -1)
        signal, gate = self.mix(around).chunk(2, -1)
        return x + self.scale * torch.tanh(signal) * torch.sigmoid(gate)


class SpliceNet(nn.Module):
    """Donor, acceptor or neither for each letter of a strand."""

    def __init__(self, width=16, reaches=(1, 2, 4)):
        super().__init__()
        self.into = nn.Linear(4, width)
        self.parts = nn.ModuleList(Gated(width, reach) for reach in reaches)
        self.out = nn.Linear(width, 3)

    def forward(self, letters):
        x = self.into(letters)
        for part in self.parts:
            x = part(x)
        return self.out(x)
