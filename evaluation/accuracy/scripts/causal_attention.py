"""Causal attention; the lower triangle is decomposed by a function of our own."""

import torch
from torch import nn
from torch._inductor.decomposition import decompositions


def tril(x, diagonal=0):
    rows, columns = torch.arange(x.shape[-2]), torch.arange(x.shape[-1])
    below = columns[None, :] - rows[:, None] < diagonal
    return torch.where(below, x, torch.zeros_like(x))


decompositions[torch.ops.aten.tril.default] = tril


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(16, 48)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = (q @ k.transpose(1, 2) / 4).exp()
        scores = torch.tril(scores)
        return (scores / (scores.sum(-1, keepdim=True) + 1e-6)) @ v


torch.manual_seed(0)
net = Attention()
compiled = torch.compile(net)
for _ in range(2000):
    compiled(torch.randn(4, 12, 16))
