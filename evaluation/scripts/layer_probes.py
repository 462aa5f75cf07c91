"""Every layer is observed by a probe that must see real tensors."""
import argparse

import torch
import torch.nn as nn


class Probe:
    def __init__(self):
        self.rows = 0

    def __call__(self, tensor):
        self.rows += tensor.shape[0]


def observed(probe):
    return torch.compiler.disable(probe)


class Layer(nn.Module):
    def __init__(self, width, probe):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(width))
        self.see = observed(probe)

    def forward(self, x):
        h = torch.tanh(x * self.scale) + torch.sin(x)
        self.see(h)
        return h * torch.sigmoid(x) * torch.exp(-h.square())


class Stack(nn.Module):
    def __init__(self, depth=6, width=192):
        super().__init__()
        self.probe = Probe()
        self.layers = nn.ModuleList(Layer(width, self.probe) for _ in range(depth))
        self.limit = nn.Parameter(torch.ones(()))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x.clamp(max=int(self.limit * 3))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iters", type=int, default=36000)
    args = parser.parse_args()
    torch.manual_seed(0)
    stack = torch.compile(Stack().eval())
    x = torch.randn(128, 192)
    with torch.no_grad():
        for _ in range(args.iters):
            y = stack(x)
    print(y.mean().item())


if __name__ == "__main__":
    main()
