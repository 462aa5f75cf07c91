"""An MLP whose silu has a decomposed backward of our own."""

import torch
from torch import nn
from torch._inductor.decomposition import decompositions


def silu_backward(grad, x):
    s = torch.sigmoid(x)
    return grad * s * (1 + x * s)


decompositions[torch.ops.aten.silu_backward.default] = silu_backward


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(24, 48), nn.Linear(48, 8)

    def forward(self, x):
        hidden = self.first(x)
        hidden = nn.functional.silu(hidden)
        return self.last(hidden)


torch.manual_seed(0)
net = Net()
compiled = torch.compile(net)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
for _ in range(2000):
    optimizer.zero_grad()
    compiled(torch.randn(64, 24)).square().mean().backward()
    optimizer.step()
