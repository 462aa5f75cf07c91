"""A warm-up rule that branches on a tensor, with fullgraph=True, in a training step."""

import torch

net = torch.nn.Linear(8, 1)


@torch.compile(fullgraph=True)
def loss_of(batch, target):
    error = net(batch) - target
    if error.abs().max() > 10.0:
        return error.abs().mean()
    return error.square().mean()


torch.manual_seed(0)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
for _ in range(5):
    optimizer.zero_grad()
    loss_of(torch.randn(12, 8), torch.randn(12, 1)).backward()
    optimizer.step()
