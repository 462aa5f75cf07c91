"""A function that Dynamo compiles in two parts; atan is lowered by a function of our own."""

import torch
from torch._inductor.lowering import lowerings

aten = torch.ops.aten
usual = lowerings[aten.atan.default]


def atan(x):
    return lowerings[aten.add.Tensor](usual(x), 0.01)


lowerings[aten.atan.default] = atan


@torch.compile
def angles(x, y):
    length = (x * x + y * y).sqrt()
    torch._dynamo.graph_break()
    slope = y / (length + x)
    half = torch.atan(slope)
    return half * 2, length


torch.manual_seed(0)
for _ in range(3000):
    angles(torch.rand(500), torch.randn(500))
