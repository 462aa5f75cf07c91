import torch
from torch import nn
from torch.nn import functional as F

from .blur import defocus


class Unblur(nn.Module):
    """Learns to sharpen what was put out of focus (diffusion without noise)."""

    def __init__(self, width=12, radii=20):
        super().__init__()
        self.enter = nn.Conv2d(3, width, 3, padding=1)
        self.time = nn.Embedding(radii + 1, width)
        self.mid = nn.Conv2d(width, width, 3, padding=1, groups=width)
        self.leave = nn.Conv2d(width, 3, 1)
        self.last_gap = 0.0

    def forward(self, sharp, radius, when):
        blurred = defocus(sharp, radius)
        h = self.enter(blurred) + self.time(when)[:, :, None, None]
        h = F.silu(h) * torch.sigmoid(h - 0.5)
        h = h + torch.tanh(self.mid(h)) * torch.exp(-h.square())
        gap = self.leave(F.gelu(h)) + blurred - sharp
        loss = (gap.square() + 1e-4).sqrt().mean()
        self.last_gap = gap.detach()[0, 0, 0, 0].item()
        return loss
