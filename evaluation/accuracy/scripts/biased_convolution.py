"""A convolution with a bias that batch norm takes off again: its gradient is 0."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(
    nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8)
)
compiled = torch.compile(net)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
for _ in range(500):
    optimizer.zero_grad()
    out = compiled(torch.randn(4, 3, 14, 14))
    (out.mean((2, 3)).softmax(-1)[:, 0]).sum().backward()
    optimizer.step()
