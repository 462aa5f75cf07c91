import torch
from torch import nn

from .telemetry import usage


class Expert(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, width)
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        h = torch.tanh(self.up(x)) * self.scale
        return torch.sin(h) * torch.sigmoid(x) + torch.exp(-h.square())


class MixtureLayer(nn.Module):
    def __init__(self, width=64, experts=4):
        super().__init__()
        self.route = nn.Linear(width, experts)
        self.experts = nn.ModuleList(Expert(width) for _ in range(experts))

    def forward(self, x):
        choice = self.route(x).argmax(-1)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows = torch.nonzero(choice == number).squeeze(1)
            out = out.index_add(0, rows, expert(x[rows]))
        usage.note(out)
        return x + out
