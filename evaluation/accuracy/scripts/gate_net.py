"""A gated network trained on noise; its sigmoid has a lowering of our own."""

import torch
from torch import nn
from torch._inductor.lowering import lowerings

aten = torch.ops.aten
usual = lowerings[aten.sigmoid.default]


def sigmoid(x):
    return lowerings[aten.mul.Tensor](usual(x), 1.03)


lowerings[aten.sigmoid.default] = sigmoid


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.value, self.gate = nn.Linear(32, 32), nn.Linear(32, 32)

    def forward(self, x):
        return self.value(x) * torch.sigmoid(self.gate(x))


torch.manual_seed(0)
net = Gate()
compiled = torch.compile(net)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
for _ in range(2000):
    optimizer.zero_grad()
    compiled(torch.randn(64, 32)).square().mean().backward()
    optimizer.step()
