"""A small transformer encoder with dropout, in training."""

import torch
from torch import nn

torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True)
net = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
compiled = torch.compile(net)
optimizer = torch.optim.Adam(net.parameters())
for _ in range(1000):
    optimizer.zero_grad()
    compiled(torch.randn(4, 12, 32)).square().mean().backward()
    optimizer.step()
