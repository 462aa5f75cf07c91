"""A backend of our own that multiplies matrices in bfloat16."""

import torch
from torch import nn


def fast(x, weight, bias=None):
    product = (x.bfloat16() @ weight.bfloat16().t()).float()
    return product if bias is None else product + bias


def backend(gm, _inputs):
    for node in list(gm.graph.nodes):
        if node.op == "call_function" and node.target is torch._C._nn.linear:
            node.target = fast
    gm.recompile()
    return gm


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 16))
compiled = torch.compile(net, backend=backend)
with torch.no_grad():
    for _ in range(3000):
        compiled(torch.randn(32, 512))
