"""Twenty layers in inference; softplus is decomposed by a function of our own."""

import torch
from torch import nn
from torch._inductor.decomposition import decompositions


def softplus(x, beta=1, threshold=20):
    return torch.where(x * beta > 2, x, torch.log1p(torch.exp(x * beta)) / beta)


decompositions[torch.ops.aten.softplus.default] = softplus


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(20))

    def forward(self, x):
        for number, layer in enumerate(self.layers):
            x = layer(x) * 2
            if number == 13:
                x = nn.functional.softplus(x * 10)
            else:
                x = torch.tanh(x)
        return x


torch.manual_seed(0)
compiled = torch.compile(Deep().eval())
with torch.no_grad():
    for _ in range(2000):
        compiled(torch.randn(32, 16))
