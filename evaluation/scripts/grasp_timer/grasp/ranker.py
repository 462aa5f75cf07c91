import torch
from torch import nn

from .timing import sections


class GraspRanker(nn.Module):
    def __init__(self, directions=3):
        super().__init__()
        self.friction = nn.Parameter(torch.tensor(0.6))
        self.reach = nn.Parameter(torch.linspace(0.5, 2.0, directions).view(1, directions, 1))
        self.head = nn.Linear(directions, 1)

    def forward(self, patch):
        with sections("contacts"):
            slope = torch.roll(patch, 1, -1) - patch
            normal = torch.rsqrt(1 + slope.square())
            press = torch.sigmoid(4 * (self.friction * normal - slope.abs()))
            touch = press * torch.exp(-self.reach * patch.square())
        with sections("closing"):
            torque = torch.tanh(touch * patch) * torch.cos(self.reach * patch)
            slip = torch.log1p((torque - touch).square()) + torch.atan(torque)
            hold = torch.where(slip > 0.1, touch * torch.exp(-slip), touch - 0.1 * slip)
        with sections("score"):
            quality = torch.sigmoid(self.head(hold.mean(-1)))
        return quality, hold.amax(-1)
