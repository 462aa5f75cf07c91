import torch
from torch import nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, points, width):
        super().__init__()
        self.shift = nn.Linear(width, 3 * width)
        self.tokens = nn.Linear(points, points)
        self.value = nn.Linear(width, width)
        self.gate = nn.Linear(width, width)

    def forward(self, x, level):
        scale, shift, gate = self.shift(level)[:, None].chunk(3, -1)
        h = F.layer_norm(x, x.shape[-1:]) * (1 + scale) + shift
        h = h + self.tokens(h.transpose(1, 2)).transpose(1, 2)
        h = F.mish(self.value(h)) * torch.sigmoid(self.gate(h))
        return x + gate * h * torch.rsqrt(h.square().mean(-1, keepdim=True) + 1e-5)


class Denoiser(nn.Module):
    def __init__(self, points, width, blocks):
        super().__init__()
        self.inward = nn.Linear(2, width)
        self.level = nn.Sequential(nn.Linear(width, width), nn.SiLU())
        self.register_buffer("freqs", torch.logspace(0, 2, width // 2))
        self.blocks = nn.ModuleList([Block(points, width) for _ in range(blocks)])
        self.outward = nn.Linear(width, 2)

    def forward(self, x, noise):
        angles = noise[:, None] * self.freqs
        level = self.level(torch.cat([angles.sin(), angles.cos()], 1))
        h = self.inward(x)
        for block in self.blocks:
            h = block(h, level)
        return self.outward(h)


class Preconditioned(nn.Module):
    def __init__(self, net, spread=0.5):
        super().__init__()
        self.net, self.spread = net, spread

    def forward(self, x, sigma):
        total = sigma.square() + self.spread ** 2
        skip, out = self.spread ** 2 / total, sigma * self.spread / total.sqrt()
        inner = self.net(x / total.sqrt()[:, None, None], sigma.log() / 4)
        return skip[:, None, None] * x + out[:, None, None] * inner
