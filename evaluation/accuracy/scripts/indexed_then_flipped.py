"""Rows written by index, then added in reverse (pytorch/pytorch issue 198270)."""

import torch


@torch.compile
def mixed(x):
    rows = torch.arange(x.size(0))
    x.index_put_((rows,), x * 2.0)
    x.add_(x.flip(0))
    return x.exp()


torch.manual_seed(0)
for _ in range(5000):
    mixed(torch.rand(4, 8))
