"""Repeated random-split fitting of an assay response model, one fresh model per split."""
import os
import time

import torch
import torch.nn as nn

torch.manual_seed(51)

SAMPLES = 4000
INPUTS = 24
STEPS = int(os.environ.get("STEPS", "3000"))
LOG = 60
PER_SPLIT = 15


class Assay(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.a = nn.Linear(INPUTS, width)
        self.hill = nn.Parameter(torch.ones(width))
        self.mid = nn.Parameter(torch.ones(width))
        self.b = nn.Linear(width, 1)

    def forward(self, x):
        z = torch.nn.functional.softplus(self.a(x)) + 1e-3
        p = torch.exp(self.hill * torch.log(z))
        h = p / (p + self.mid.abs() + 0.1)
        return self.b(torch.asinh(4 * h) - torch.sin(h)).squeeze(-1)


def new_split(x, y):
    torch.compiler.reset()
    order = torch.randperm(SAMPLES)
    train = order[: SAMPLES // 2]
    net = Assay()
    opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    return torch.compile(net), opt, x[train], y[train]


def main():
    x = torch.randn(SAMPLES, INPUTS)
    y = torch.tanh(x[:, 0] * x[:, 1]) + 0.5 * torch.sigmoid(3 * x[:, 2]) + 0.05 * torch.randn(SAMPLES)
    scores = []
    t0 = time.perf_counter()
    for step in range(1, STEPS + 1):
        if step % PER_SPLIT == 1:
            net, opt, xs, ys = new_split(x, y)
        loss = (net(xs) - ys).square().mean()
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % PER_SPLIT == 0:
            scores.append(loss.item())
        if step % LOG == 0:
            dt = (time.perf_counter() - t0) / LOG * 1e3
            print(f"split {len(scores)} loss {scores[-1]:.4f} mean {sum(scores) / len(scores):.4f} {dt:.3f} ms/step")
            t0 = time.perf_counter()


if __name__ == "__main__":
    main()
