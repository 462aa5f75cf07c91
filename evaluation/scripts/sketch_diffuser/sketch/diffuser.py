import torch
from torch import nn


class Stroke(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.spread = nn.Conv2d(width, width, 3, padding=1, groups=width)
        self.scale = nn.Parameter(torch.ones(width, 1, 1))
        self.tilt = nn.Parameter(torch.zeros(width, 1, 1))

    def forward(self, x, level):
        h = self.spread(x) * self.scale + self.tilt + level
        h = torch.tanh(h) * torch.sigmoid(x) + 0.2 * torch.sin(2 * h)
        return x + h * torch.exp(-h.square())


class Denoiser(nn.Module):
    def __init__(self, width, blocks):
        super().__init__()
        self.open = nn.Conv2d(1, width, 1)
        self.blocks = nn.ModuleList(Stroke(width) for _ in range(blocks))
        self.close = nn.Conv2d(width, 1, 1)

    def forward(self, x, level):
        h = self.open(x)
        for block in self.blocks:
            h = block(h, level)
        return self.close(h)


class Diffuser(nn.Module):
    def __init__(self, width, blocks, steps, side=32):
        super().__init__()
        self.denoiser = Denoiser(width, blocks)
        self.side = side
        self.register_buffer("levels", torch.linspace(1.0, 0.02, steps))

    def draw(self, count):
        x = torch.randn(count, 1, self.side, self.side)
        for level in self.levels:
            x = x - 0.1 * level * self.denoiser(x, level) + 0.05 * level * torch.randn_like(x)
        return torch.sigmoid(x)
