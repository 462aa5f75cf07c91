"""Bird species from spectrogram statistics; residual branches trained with random depth."""
import argparse
import random

import torch
from torch import nn


class Branches(nn.Module):
    def __init__(self, width=80, depth=6, drop=0.3):
        super().__init__()
        self.weights = nn.Parameter(0.2 * torch.randn(depth, width))
        self.shifts = nn.Parameter(torch.zeros(depth, width))
        self.drop = drop

    def forward(self, x, keep):
        for w, b, k in zip(self.weights, self.shifts, keep):
            u = w * x + b
            x = x + k * (u / (1.0 + u.abs()) * (0.2 * x + 0.5).clamp(0.0, 1.0) - 0.01 * u)
        return x


class Classifier(nn.Module):
    def __init__(self, species=30):
        super().__init__()
        self.branches = Branches()
        self.head = nn.Linear(80, species)

    def forward(self, x, keep):
        x = self.branches(x, keep)
        return self.head(x)


class Confusion:
    """Which species get mistaken for which."""

    def __init__(self):
        self.counts = {}

    def add(self, logits, labels):
        for guess, truth in zip(logits.argmax(-1).tolist(), labels.tolist()):
            self.counts[guess, truth] = self.counts.get((guess, truth), 0) + 1

    def worst(self):
        wrong = {k: v for k, v in self.counts.items() if k[0] != k[1]}
        return max(wrong, key=wrong.get) if wrong else None


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=1400)
    args = ap.parse_args()
    torch.manual_seed(2)
    random.seed(2)
    model = Classifier()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    model.compile()

    features = torch.randn(24576, 80)
    labels = (features[:, :30] * 2).argmax(-1)
    confusion = Confusion()
    for step in range(args.steps):
        lo = (step * 4096) % 24576
        logits = model(features[lo:lo + 4096], (torch.rand(12) >= 0.3).float())
        loss = nn.functional.cross_entropy(logits, labels[lo:lo + 4096])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        confusion.add(logits.detach(), labels[lo:lo + 4096])
        if step % 100 == 0:
            print(f"step {step:5d} loss {loss.item():.4f} worst pair {confusion.worst()}")


if __name__ == "__main__":
    main()
