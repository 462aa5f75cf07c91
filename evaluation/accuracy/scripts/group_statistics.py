"""Group normalization; variances are lowered by a function of our own."""

import torch
from torch import nn
from torch._inductor.lowering import lowerings

aten = torch.ops.aten
usual = lowerings[aten.var_mean.correction]


def var_mean(x, axis=None, *, correction=None, keepdim=False):
    return usual(x, axis, correction=1, keepdim=keepdim)


lowerings[aten.var_mean.correction] = var_mean


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3)
        self.norm = nn.GroupNorm(4, 8)

    def forward(self, x):
        hidden = self.first(x)
        hidden = self.norm(hidden)
        return torch.relu(hidden)


torch.manual_seed(0)
net = Net()
compiled = torch.compile(net)
with torch.no_grad():
    for _ in range(1000):
        compiled(torch.randn(4, 3, 5, 5))
