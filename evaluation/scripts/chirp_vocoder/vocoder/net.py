import torch
from torch import nn


class Snake(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.rate = nn.Parameter(torch.ones(channels))

    def forward(self, x):
        return x + torch.sin(self.rate * x).square() / (self.rate.abs() + 1e-4)


class Vocoder(nn.Module):
    """Adds up damped chirps whose course is learned per voice."""

    def __init__(self, voices=24, points=4096):
        super().__init__()
        self.start = nn.Parameter(torch.rand(voices, 1) * 200 + 40)
        self.glide = nn.Parameter(torch.randn(voices, 1) * 20)
        self.decay = nn.Parameter(torch.rand(voices, 1) * 3)
        self.drive = Snake(1)
        self.shape = Snake(1)
        self.register_buffer("clock", torch.linspace(0, 1, points))

    def forward(self, loudness):
        t = self.clock
        turns = self.start * t + self.glide * t * t
        wave = torch.sin(6.2831853 * turns) * torch.exp(-self.decay * t)
        wave = self.shape(torch.tanh(self.drive(wave) * 1.5))
        return (loudness.unsqueeze(-1) * wave).sum(-2)
