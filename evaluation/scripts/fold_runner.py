"""Cross-validation; each fold is trained from scratch."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.a = nn.Linear(16, width)
        self.b = nn.Linear(width, 1)

    def forward(self, x):
        h = torch.tanh(self.a(x))
        if not torch.compiler.is_exporting():
            print(end="")
        return self.b(torch.sin(h) * torch.sigmoid(h))


class Fold:
    def __init__(self, number, x, y):
        torch._dynamo.reset()
        keep = torch.arange(len(x)) % 5 != number % 5
        self.x, self.y = x[keep], y[keep]
        self.model = Model()
        self.net = torch.compile(self.model)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)

    def fit(self, steps):
        for _ in range(steps):
            loss = F.mse_loss(self.net(self.x).squeeze(1), self.y)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
        return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folds", type=int, default=100)
    parser.add_argument("--steps", type=int, default=600)
    args = parser.parse_args()
    torch.manual_seed(0)
    x = torch.randn(640, 16)
    y = torch.sin(x.sum(1))
    for number in range(args.folds):
        print(f"fold {number}: {Fold(number, x, y).fit(args.steps):.4f}")


if __name__ == "__main__":
    main()
