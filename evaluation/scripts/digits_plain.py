"""Classify synthetic stroke images with a wide perceptron, evaluating now and then."""
import argparse
import time

import torch
from torch import nn


def strokes(n, side, seed):
    g = torch.Generator().manual_seed(seed)
    label = torch.randint(0, 10, (n,), generator=g)
    t = torch.linspace(-1, 1, side)
    yy, xx = torch.meshgrid(t, t, indexing="ij")
    angle = label.float() * 0.314 + 0.05 * torch.randn(n, generator=g)
    shift = 0.2 * torch.randn(n, generator=g)
    line = xx * angle.cos()[:, None, None] + yy * angle.sin()[:, None, None] - shift[:, None, None]
    img = torch.exp(-40.0 * line * line) + 0.1 * torch.randn(n, side, side, generator=g)
    return img.flatten(1), label


class Net(nn.Module):
    def __init__(self, inputs, width):
        super().__init__()
        self.a = nn.Linear(inputs, width)
        self.b = nn.Linear(width, width)
        self.c = nn.Linear(width, 10)

    def forward(self, x):
        return self.c(torch.relu(self.b(torch.relu(self.a(x)))))


@torch.no_grad()
def accuracy(model, x, y, size):
    model.eval()
    right = sum((model(a).argmax(1) == b).sum() for a, b in zip(x.split(size), y.split(size)))
    model.train()
    return right.item() / len(y)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=5500)
    ap.add_argument("--batch", type=int, default=128)
    args = ap.parse_args()

    torch.manual_seed(0)
    x, y = strokes(16384, 20, 1)
    vx, vy = strokes(1024, 20, 2)
    net = Net(400, 512)
    model = torch.compile(net)
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, fused=True)
    g = torch.Generator().manual_seed(3)
    began = time.perf_counter()
    for i in range(args.steps):
        rows = torch.randint(0, len(x), (args.batch,), generator=g)
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        if i % 400 == 399:
            print(f"{i + 1}: loss {loss.item():.4f} val {accuracy(model, vx, vy, args.batch):.3f} {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
