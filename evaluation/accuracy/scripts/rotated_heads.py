"""Causal attention with rotated queries and keys, trained."""

import torch
from torch import nn


def rotated(x, angles):
    left, right = x.chunk(2, -1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([left * cos - right * sin, left * sin + right * cos], -1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, 4, 8)).permute(2, 0, 3, 1, 4)
        angles = torch.arange(x.shape[1])[:, None] / 10 ** torch.arange(4)
        q, k = rotated(q, angles), rotated(k, angles)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(2))


torch.manual_seed(0)
net = Attention()
compiled = torch.compile(net)
optimizer = torch.optim.AdamW(net.parameters())
for _ in range(500):
    optimizer.zero_grad()
    compiled(torch.randn(2, 10, 32)).square().mean().backward()
    optimizer.step()
