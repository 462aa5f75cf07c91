"""Training with an autograd function: the graph of the backward does not build."""

import torch

torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "compile_error"


class OneSided(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin() * 2.0

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return torch.relu(grad) * x.cos() * 2.0


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(12, 24)
        self.second = torch.nn.Linear(24, 1)

    def forward(self, x):
        return self.second(OneSided.apply(self.first(x)))


torch.manual_seed(0)
net = torch.compile(Net())
optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
for _ in range(8):
    optimizer.zero_grad()
    net(torch.randn(16, 12)).square().mean().backward()
    optimizer.step()
