"""Attention over padded sequences; a sequence of padding alone has NaN."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(32, 96)

    def forward(self, x, padding):
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = q @ k.transpose(1, 2) / 32**0.5
        scores = scores.masked_fill(padding[:, None, :], float("-inf"))
        return scores.softmax(-1) @ v, scores


torch.manual_seed(0)
net = Attention()
compiled = torch.compile(net)
for _ in range(2000):
    padding = torch.arange(10) >= torch.tensor([10, 7, 3, 0])[:, None]
    compiled(torch.randn(4, 10, 32), padding)
