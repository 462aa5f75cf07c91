"""A layer with a simpler form for compilers."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(16, 32), nn.Linear(32, 4)

    def forward(self, x):
        hidden = torch.cos(self.first(x))
        if torch.compiler.is_compiling():
            hidden = torch.relu(hidden)
        else:
            hidden = nn.functional.leaky_relu(hidden, 0.3)
        return self.last(hidden)


torch.manual_seed(0)
net = Net()
compiled = torch.compile(net)
with torch.no_grad():
    for _ in range(3000):
        compiled(torch.randn(32, 16))
