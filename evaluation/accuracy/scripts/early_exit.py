"""A loop that Dynamo leaves to read a value."""

import torch


@torch.compile
def refined(x):
    y = x.tanh()
    if y.abs().mean().item() > 0.1:
        y = y * 0.5 + x.sin()
    return y.logsumexp(-1)


torch.manual_seed(0)
for _ in range(3000):
    refined(torch.randn(64, 32))
