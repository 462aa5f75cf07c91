"""Edges summed into nodes, as graph networks do it, trained."""

import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.message = nn.Linear(16, 16)

    def forward(self, nodes, source, target):
        messages = torch.relu(self.message(nodes))[source]
        total = torch.zeros_like(nodes).index_add(0, target, messages)
        count = torch.zeros(nodes.shape[0]).index_add(0, target, torch.ones(len(target)))
        return total / count.clamp(min=1)[:, None]


torch.manual_seed(0)
net = Layer()
compiled = torch.compile(net)
for _ in range(1000):
    source, target = torch.randint(40, (2, 300))
    compiled(torch.randn(40, 16), source, target).square().mean().backward()
