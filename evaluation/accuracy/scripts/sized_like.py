"""A tensor that is made by the size of another one (pytorch/pytorch issue 196467)."""

import torch


@torch.compile
def blank(x, weight):
    found = torch.sigmoid(x @ weight)
    made = torch.Tensor(found.size()).zero_()
    return made, found


torch.manual_seed(0)
for _ in range(3000):
    blank(torch.randn(3, 8), torch.randn(8, 5))
