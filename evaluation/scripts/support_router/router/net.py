import torch
from torch import nn


class TeamNet(nn.Module):
    """Words come as vectors; attention pools them without a softmax over pairs."""

    def __init__(self, width=32, hidden=96, teams=12):
        super().__init__()
        self.widen = nn.Linear(width, hidden)
        self.key = nn.Linear(hidden, 1)
        self.teams = nn.Linear(hidden, teams)

    def forward(self, words):
        h = self.widen(words)
        h = torch.tanh(h) * torch.sigmoid(1.5 * h) + torch.sin(h) * torch.exp(-h.square())
        h = torch.log1p(h.square()) * torch.cos(h) + torch.erf(h)
        weight = torch.softmax(self.key(h), 1)
        return torch.log_softmax(self.teams((weight * h).sum(1)), -1)
