import torch
import torch.nn as nn


class LoadNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.enter = nn.Linear(3, width)
        self.memory = nn.GRU(width, width, batch_first=True)
        self.scale = nn.Parameter(torch.ones(width))
        self.leave = nn.Linear(width, 3)

    def features(self, load):
        change = load - load.roll(1, 1)
        return torch.stack((load, change, torch.tanh(change * 5)), -1)

    def forward(self, load):
        h = self.enter(self.features(load))
        h = torch.sin(h) * torch.sigmoid(h * self.scale) + torch.exp(-h.square())
        h, last = self.memory(h)
        h = torch.tanh(h * self.scale) * torch.cos(h) + torch.log1p(h.square())
        return load[:, -1:] + self.leave(h.mean(1) + last[0])
