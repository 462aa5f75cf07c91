"""A training script of two files; the other one has changed how Inductor writes erf."""

import torch
from kernels import use_fast_erf

use_fast_erf()


class Mixer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = torch.nn.Linear(16, 16)
        self.channels = torch.nn.Linear(8, 8)

    def forward(self, x):
        x = x + self.tokens(x.transpose(1, 2)).transpose(1, 2)
        return torch.erf(self.channels(x)) * 0.5 + x


torch.manual_seed(0)
model = torch.compile(Mixer())
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(4, 16, 8)).square().mean().backward()
    optimizer.step()
