import torch
import torch.nn as nn


class Denoiser(nn.Module):
    def __init__(self, width=96, layers=3):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.tint = nn.Parameter(torch.randn(layers, width) * 0.2)
        self.adapter = nn.Identity()

    def forward(self, h, level):
        for layer, tint in zip(self.layers, self.tint):
            u = layer(h) + self.adapter(h) + level
            u = torch.tanh(u) * torch.sigmoid(u * tint) + torch.sin(u) * torch.exp(-u.square())
            h = h + u * torch.rsqrt(1 + u.square()) + torch.cos(u) * tint - torch.erf(u)
        if level < 0.25:
            h = h.clamp(-3, 3)
        return h


class Painter:
    def __init__(self):
        self.denoiser = Denoiser().eval()
        self.denoise = torch.compile(self.denoiser)

    def wear(self, adapter):
        self.denoiser.adapter = adapter

    @torch.no_grad()
    def draw(self, canvas, steps):
        for level in torch.linspace(1, 0, steps):
            canvas = canvas - self.denoise(canvas, level) * (0.5 / steps)
        return canvas
