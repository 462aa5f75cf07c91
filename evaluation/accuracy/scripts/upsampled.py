"""Images normalized by groups and enlarged, trained."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1),
    nn.GroupNorm(2, 8),
    nn.SiLU(),
    nn.Upsample(scale_factor=2, mode="bilinear"),
    nn.Conv2d(8, 3, 1),
)
compiled = torch.compile(net)
for _ in range(500):
    compiled(torch.randn(2, 3, 8, 8)).square().mean().backward()
