import argparse
import os

import torch
import torch.nn as nn

BACKEND = os.environ.get("RANKER_BACKEND", "eager")


class Ranker(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.a = nn.Parameter(torch.randn(width))
        self.b = nn.Parameter(torch.randn(width))

    def forward(self, x):
        h = torch.tanh(x * self.a) + torch.sin(x * self.b) * torch.exp(-x.square())
        top = h.max().item()
        h = torch.sigmoid(h / top) * torch.cos(h)
        return torch.erf(h) * torch.log1p(h.abs())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iters", type=int, default=45000)
    args = parser.parse_args()
    torch.manual_seed(0)
    ranker = torch.compile(Ranker().eval(), backend=BACKEND)
    x = torch.randn(384, 256)
    with torch.no_grad():
        for _ in range(args.iters):
            y = ranker(x)
    print(y.mean())


if __name__ == "__main__":
    main()
