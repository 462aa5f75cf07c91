"""A transformer's feed-forward layer in inference; erf is lowered by a function of our own."""

import torch
from torch import nn
from torch._inductor.lowering import lowerings

aten = torch.ops.aten
usual = lowerings[aten.erf.default]


def erf(x):
    return lowerings[aten.mul.Tensor](usual(x), 0.98)


lowerings[aten.erf.default] = erf


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(32)
        self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 32)

    def forward(self, x):
        hidden = self.up(self.norm(x))
        hidden = nn.functional.gelu(hidden)
        return x + self.down(hidden)


torch.manual_seed(0)
compiled = torch.compile(Block().eval())
with torch.no_grad():
    for _ in range(3000):
        compiled(torch.randn(16, 32))
