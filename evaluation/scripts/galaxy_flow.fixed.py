"""Normalising flow over galaxy colours, scored by log-likelihood."""
import argparse
import math

import torch
from torch import nn


class Coupling(nn.Module):
    def __init__(self, dims, flip):
        super().__init__()
        self.flip = flip
        half = dims // 2
        self.a = nn.Parameter(0.1 * torch.randn(half))
        self.b = nn.Parameter(0.1 * torch.randn(half))
        self.c = nn.Parameter(0.1 * torch.randn(half))

    def forward(self, x):
        left, right = x.chunk(2, dim=-1)
        if self.flip:
            left, right = right, left
        u = self.a * left + self.b
        s = 0.5 * u / (1.0 + u.abs())
        t = self.c * left / (1.0 + left * left)
        right = right * torch.exp(s) + t
        out = (right, left) if self.flip else (left, right)
        return torch.cat(out, dim=-1), s.sum(-1)


class Flow(nn.Module):
    def __init__(self, dims=16, layers=4):
        super().__init__()
        self.layers = nn.ModuleList(Coupling(dims, bool(i % 2)) for i in range(layers))
        self.dims = dims

    def forward(self, x):
        volume = x.new_zeros(x.shape[0])
        for layer in self.layers:
            x, v = layer(x)
            volume = volume + v
        return x, volume

    def log_prob(self, x):
        z, volume = self.forward(x)
        prior = -0.5 * z.square().sum(-1) - 0.5 * self.dims * math.log(2 * math.pi)
        return prior + volume


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=2900)
    args = ap.parse_args()
    torch.manual_seed(5)
    catalogue = torch.randn(40_000, 16) @ torch.randn(16, 16) * 0.3
    flow = Flow()
    optimiser = torch.optim.Adam(flow.parameters(), lr=2e-3)
    flow.log_prob = torch.compile(flow.log_prob)

    for step in range(args.steps):
        rows = torch.randint(0, len(catalogue), (8192,))
        loss = -flow.log_prob(catalogue[rows]).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step % 200 == 0:
            print(f"step {step:5d} nll {loss.item():.4f}")


if __name__ == "__main__":
    main()
