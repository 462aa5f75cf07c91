"""A backend of our own on AOTAutograd, with a compiler for the backward."""

import torch
from functorch.compile import make_boxed_func
from torch import nn
from torch._dynamo.backends.common import aot_autograd

aten = torch.ops.aten


def forward_compiler(gm, _inputs):
    return make_boxed_func(gm.forward)


def backward_compiler(gm, _inputs):
    for node in gm.graph.nodes:
        if node.op == "call_function" and node.target is aten.threshold_backward.default:
            node.args = (*node.args[:2], 0.2)
    gm.recompile()
    return make_boxed_func(gm.forward)


backend = aot_autograd(fw_compiler=forward_compiler, bw_compiler=backward_compiler)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(16, 32), nn.Linear(32, 4)

    def forward(self, x):
        hidden = self.first(x) * 2
        hidden = torch.relu(hidden)
        return self.last(hidden).sigmoid()


torch.manual_seed(0)
net = Net()
compiled = torch.compile(net, backend=backend)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
for _ in range(3000):
    optimizer.zero_grad()
    compiled(torch.randn(32, 16)).square().mean().backward()
    optimizer.step()
