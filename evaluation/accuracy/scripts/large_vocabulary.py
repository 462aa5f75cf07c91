"""The loss of a language model's head in half precision, over many words."""

import torch
from torch import nn


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(64)
        self.words = nn.Linear(64, 8000, bias=False)

    def forward(self, x, targets):
        logits = self.words(self.norm(x))
        return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


torch.manual_seed(0)
net = Head().bfloat16()
compiled = torch.compile(net)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
for _ in range(300):
    optimizer.zero_grad()
    x = torch.randn(2, 32, 64, dtype=torch.bfloat16)
    compiled(x, torch.randint(8000, (2, 32))).backward()
    optimizer.step()
