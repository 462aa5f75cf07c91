"""Medians, quantiles and counts of small whole numbers."""

import torch


@torch.compile
def middle(x):
    return x.median(-1), x.float().quantile(0.25, -1), (x == x.mode(-1, True).values).sum(-1)


torch.manual_seed(0)
for _ in range(2000):
    middle(torch.randint(5, (32, 21)))
