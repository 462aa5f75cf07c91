"""Blocks whose activations are computed again in backward."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(24, 24), nn.GELU()) for _ in range(3))

    def forward(self, x):
        for block in self.blocks:
            x = x + checkpoint(block, x, use_reentrant=False)
        return x


torch.manual_seed(0)
net = Net()
compiled = torch.compile(net)
for _ in range(1000):
    compiled(torch.randn(16, 24)).square().mean().backward()
