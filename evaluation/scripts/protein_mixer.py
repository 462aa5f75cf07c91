"""Wide feed-forward regression on protein embeddings."""
import argparse

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Stability(nn.Module):
    def __init__(self, width=384, depth=3):
        super().__init__()
        self.blocks = nn.Sequential(*[Block(width) for _ in range(depth)])
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(self.blocks(x)).squeeze(-1)


def minibatches(data, target, size, generator):
    while True:
        order = torch.randperm(len(data), generator=generator)
        for lo in range(0, len(data), size):
            rows = order[lo:lo + size]
            yield data[rows], target[rows]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=1000)
    args = ap.parse_args()
    torch.manual_seed(6)
    generator = torch.Generator().manual_seed(6)
    data = torch.randn(2048, 384)
    target = torch.tanh(data[:, :8].sum(1))
    model = Stability()
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-3)
    predict = torch.compile(model)
    source = minibatches(data, target, 512, generator)
    for step in range(args.steps):
        x, y = next(source)
        loss = (predict(x) - y).square().mean()
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        if step % 25 == 0:
            print(f"step {step:5d} mse {loss.item():.4f}")


if __name__ == "__main__":
    main()
