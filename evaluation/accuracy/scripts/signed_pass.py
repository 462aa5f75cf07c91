"""Distances; a pass of our own simplifies the graph of forward and backward."""

import torch
from torch import nn

aten = torch.ops.aten


def simplify(graph):
    for node in list(graph.nodes):
        if node.op == "call_function" and node.target is aten.neg.default:
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)


torch._inductor.config.joint_custom_post_pass = simplify


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(16, 32), nn.Linear(32, 1)

    def forward(self, x):
        hidden = self.first(x).square()
        near = torch.exp(-hidden)
        return self.last(near)


torch.manual_seed(0)
net = Net()
compiled = torch.compile(net)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
for _ in range(2000):
    optimizer.zero_grad()
    compiled(torch.randn(32, 16) / 2).square().mean().backward()
    optimizer.step()
