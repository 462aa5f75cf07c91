import argparse
import random

import torch
import torch.nn as nn


class Receipts:
    """Lines of text, rasterised letter by letter."""

    def __init__(self, seed=0):
        self.random = random.Random(seed)

    def letter(self, code):
        return [((code * (i + 3)) % 17) / 17 for i in range(16)]

    def line(self, letters=32):
        pixels = []
        for _ in range(letters):
            pixels.extend(self.letter(self.random.randrange(96)))
        return pixels

    def batch(self, size=16):
        return torch.tensor([self.line() for _ in range(size)])


class Reader(nn.Module):
    def __init__(self, pixels=512, width=96):
        super().__init__()
        self.a = nn.Linear(pixels, width)
        self.b = nn.Linear(width, 32)

    def forward(self, x):
        h = torch.tanh(self.a(x))
        return self.b(h * torch.sigmoid(h))


class Training:
    def __init__(self):
        self.model = Reader()
        torch.compile(self.model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.receipts = Receipts()

    def step(self):
        loss = self.model(self.receipts.batch()).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=45000)
    args = parser.parse_args()
    torch.manual_seed(0)
    training = Training()
    for step in range(args.steps):
        loss = training.step()
        if step % 1000 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()
