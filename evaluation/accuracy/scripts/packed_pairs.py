"""Pairs of 32-bit numbers in 64-bit ones (pytorch/pytorch issue 198101)."""

import torch


@torch.compile
def packed(x):
    y = x.view(torch.int32) * 2
    y.sub_(-4)
    x[:, 2:5] = 2
    return y.view(torch.int64)


torch.manual_seed(0)
for _ in range(5000):
    packed(torch.randint(-100, 100, (4, 6)))
