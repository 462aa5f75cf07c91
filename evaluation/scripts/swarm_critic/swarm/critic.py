import torch
import torch.nn as nn

from rltools import RunningScale


class Critic(nn.Module):
    """A value of random features, on scaled observations."""

    def __init__(self, width):
        super().__init__()
        self.seen = RunningScale(width)
        self.felt = RunningScale(width)
        self.wave = nn.Parameter(torch.randn(width))
        self.phase = nn.Parameter(torch.randn(width))
        self.weight = nn.Parameter(torch.randn(width) / width)

    def forward(self, state):
        h = state * self.wave
        h = h / (1 + h.abs()) + 0.1 * torch.relu(state - self.phase) - 0.05 * state.square()
        h = self.seen.apply(h)
        h = h * self.wave + self.phase
        h = h / (1 + h.square()) + 0.2 * h.clamp(-1, 1)
        h = self.felt.apply(h)
        h = h * torch.clamp(h + 3, 0, 6) / 6 + 0.1 * (h - self.phase).abs()
        return (h * self.weight).sum(-1)
