"""An activation with a backward of its own, that has a short form for compiled code."""

import torch
from torch import nn


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        if torch.compiler.is_compiling():
            return grad * s
        return grad * (s + x * s * (1 - s))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(16, 32), nn.Linear(32, 4)

    def forward(self, x):
        return self.last(Swish.apply(self.first(x)))


torch.manual_seed(0)
net = Net()
compiled = torch.compile(net)
optimizer = torch.optim.Adam(net.parameters())
for _ in range(2000):
    optimizer.zero_grad()
    compiled(torch.randn(32, 16)).logsumexp(-1).mean().backward()
    optimizer.step()
