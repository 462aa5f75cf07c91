"""A decoder that writes keys into its cache, with its step count and its loss as a number."""

import torch
from torch import nn

history = []


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.key = nn.Linear(16, 16)
        self.register_buffer("keys", torch.zeros(32, 16))
        self.register_buffer("at", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        self.keys.index_copy_(0, self.at[None] % 32, self.key(x)[None])
        self.at.add_(1)
        return (self.keys @ x).softmax(0) @ self.keys


decoder = Decoder()
compiled = torch.compile(decoder)


@torch.compile
def step(x):
    loss = (x.square().mean() / 3).item()
    history.append(loss)
    return x.t(), x[:, :2], loss


torch.manual_seed(0)
for _ in range(2000):
    with torch.no_grad():
        compiled(torch.randn(16))
    step(torch.randn(8, 4))
assert len(history) == 2000
