"""Score messages with a small gated network."""
import argparse

import torch
import torch.nn as nn


class Scorer(nn.Module):
    def __init__(self, features=256):
        super().__init__()
        self.gate = nn.Linear(features, features)
        self.out = nn.Linear(features, 1)

    def forward(self, x):
        h = torch.tanh(x) * torch.sigmoid(self.gate(x)) + torch.sin(x)
        peak = h.abs().amax().item()
        h = torch.exp(-(h / peak).square()) * torch.cos(h) + torch.log1p(h.abs())
        return self.out(torch.erf(h)).squeeze(-1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iters", type=int, default=90000)
    parser.add_argument("--messages", type=int, default=256)
    args = parser.parse_args()
    torch.manual_seed(0)
    scorer = torch.compile(Scorer().eval())
    messages = torch.randn(args.messages, 256)
    with torch.no_grad():
        for _ in range(args.iters):
            scores = scorer(messages)
    print("mean", scores.mean())


if __name__ == "__main__":
    main()
