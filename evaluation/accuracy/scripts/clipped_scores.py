"""Scores up to a limit count; comparisons are lowered by a function of our own."""

import torch
from torch._inductor.lowering import lowerings

aten = torch.ops.aten
lowerings[aten.le.Scalar] = lowerings[aten.lt.Scalar]


@torch.compile
def counted(scores):
    weight = torch.softmax(scores / 3, -1)
    kept = scores <= 5
    return (weight * kept).sum(-1)


torch.manual_seed(0)
for _ in range(3000):
    counted(torch.randint(10, (64, 20)).float())
