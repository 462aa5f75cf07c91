"""A mixture of experts with noise on its router, trained."""

import torch
from torch import nn


class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(24, 4)
        self.experts = nn.Parameter(torch.randn(4, 24, 24) / 5)

    def forward(self, x):
        logits = self.router(x)
        logits = logits + 0.1 * torch.randn_like(logits)
        weight, chosen = logits.softmax(-1).topk(2, -1)
        every = torch.einsum("bi,eij->bej", x, self.experts)
        picked = every.gather(1, chosen[..., None].expand(-1, -1, 24))
        return (weight[..., None] * picked).sum(1), chosen


torch.manual_seed(0)
net = Mixture()
compiled = torch.compile(net)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
for _ in range(1000):
    optimizer.zero_grad()
    compiled(torch.randn(64, 24))[0].square().mean().backward()
    optimizer.step()
