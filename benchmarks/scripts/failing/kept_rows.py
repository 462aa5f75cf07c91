"""Keeps at most four rows with a positive sum: a branch on a number that is not known."""

import torch


@torch.compile(fullgraph=True)
def kept(rows, weight):
    good = rows[rows.sum(-1) > 0]
    if good.shape[0] > 4:
        good = good[:4]
    return (good @ weight).mean(0)


torch.manual_seed(0)
weight = torch.randn(7, 3)
for _ in range(5):
    kept(torch.randn(20, 7), weight)
