"""A small network of convolutions in the memory format channels_last, in inference."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 4, 1)
)
compiled = torch.compile(net.eval().to(memory_format=torch.channels_last))
with torch.no_grad():
    for _ in range(1000):
        compiled(torch.randn(2, 3, 12, 12).to(memory_format=torch.channels_last))
