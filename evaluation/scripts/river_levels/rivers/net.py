import torch
import torch.nn as nn


class LevelNet(nn.Module):
    def __init__(self, window, width=192, layers=4):
        super().__init__()
        self.enter = nn.Linear(window, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.leave = nn.Linear(width, 1)

    def forward(self, past):
        base = past[:, -1:]
        h = self.enter(past - base)
        for layer in self.layers:
            h = h + torch.tanh(layer(h)) * torch.sigmoid(h)
        return base + self.leave(h)
