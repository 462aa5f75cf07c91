"""A backend of our own on AOTAutograd that changes nothing."""

import torch
from functorch.compile import make_boxed_func
from torch import nn
from torch._dynamo.backends.common import aot_autograd

backend = aot_autograd(fw_compiler=lambda gm, _inputs: make_boxed_func(gm.forward))
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Dropout(0.2), nn.Linear(32, 4))
compiled = torch.compile(net, backend=backend)
for _ in range(2000):
    compiled(torch.randn(32, 16)).square().mean().backward()
