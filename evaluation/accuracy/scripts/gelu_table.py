"""An MLP whose gelu has a decomposed backward of our own."""

import math

import torch
from torch import nn
from torch._inductor.decomposition import decompositions


def gelu_backward(grad, x, approximate="none"):
    normal = 0.5 * (1 + torch.erf(x / math.sqrt(2)))
    density = torch.exp(-0.5 * x * x) / math.sqrt(math.pi)
    return grad * (normal + x * density)


decompositions[torch.ops.aten.gelu_backward.default] = gelu_backward
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(24, 48), nn.GELU(), nn.Linear(48, 8))
compiled = torch.compile(net)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
for _ in range(2000):
    optimizer.zero_grad()
    compiled(torch.randn(64, 24)).square().mean().backward()
    optimizer.step()
