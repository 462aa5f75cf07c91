"""Train a leaf-disease grader with stochastic depth."""
import random
import sys
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Plan:
    depth: int = 6
    width: int = 64
    tokens: int = 49
    batch: int = 32
    survive: float = 0.8
    lr: float = 3e-4


class LeafNet(nn.Module):
    def __init__(self, plan):
        super().__init__()
        self.survive = plan.survive
        self.patch = nn.Linear(48, plan.width)
        self.scales = nn.ParameterList(nn.Parameter(0.1 * torch.randn(3, plan.width)) for _ in range(plan.depth))
        self.grade = nn.Linear(plan.width, 5)

    def forward(self, x):
        h = self.patch(x)
        for scale in self.scales:
            if self.training and random.random() > self.survive:
                continue
            centred = h - h.mean(-1, keepdim=True)
            n = centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + 1e-5)
            gate = torch.sigmoid(n * scale[0] + scale[1])
            swirl = torch.tanh(n) * gate + torch.sin(n * scale[2]) * (1 - gate)
            h = h + F.softplus(swirl) * torch.exp(-0.5 * swirl * swirl)
        return self.grade(h.mean(1))


def leaves(plan, count=8):
    for _ in range(count):
        yield torch.randn(plan.batch, plan.tokens, 48), torch.randint(0, 5, (plan.batch,))


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
    plan = Plan()
    torch.manual_seed(2)
    random.seed(2)
    net = LeafNet(plan)
    model = torch.compile(net)
    optimizer = torch.optim.AdamW(net.parameters(), lr=plan.lr)
    album = list(leaves(plan))
    for step in range(steps):
        photos, grades = album[step % len(album)]
        loss = F.cross_entropy(model(photos), grades)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 500 == 0:
            print(step, f"{loss.item():.3f}")


if __name__ == "__main__":
    main()
