import torch
import torch.nn as nn
import torch.nn.functional as F


class SkipGram(nn.Module):
    def __init__(self, nodes, width=32):
        super().__init__()
        self.inner = nn.Embedding(nodes, width)
        self.outer = nn.Embedding(nodes, width)
        nn.init.normal_(self.inner.weight, std=0.1)
        nn.init.normal_(self.outer.weight, std=0.1)

    def likeness(self, a, b):
        return (torch.tanh(a) * torch.tanh(b)).sum(-1) - 0.01 * (a - b).square().sum(-1)

    def forward(self, centre, context, other):
        a = self.inner(centre)
        near = F.softplus(-self.likeness(a, self.outer(context))).mean()
        far = self.likeness(a.unsqueeze(1), self.outer(other))
        clean = far[other != context.unsqueeze(1)]
        return near + F.softplus(clean).mean()


class Fit:
    def __init__(self, nodes):
        self.model = SkipGram(nodes)
        self.loss = torch.compile(self.model)
        self.optimizer = torch.optim.Adagrad(self.model.parameters(), lr=0.05)

    def update(self, centre, context, other):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(centre, context, other)
        loss.backward()
        self.optimizer.step()
        return loss.detach()
