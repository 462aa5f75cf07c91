"""Trains a beat classifier on windows of an electrocardiogram, one epoch after the other."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class BeatNet(nn.Module):
    def __init__(self, width, kinds):
        super().__init__()
        self.enter = nn.Conv1d(2, width, 7, padding=3)
        self.deep = nn.Conv1d(width, width, 5, padding=2)
        self.norm = nn.GroupNorm(4, width)
        self.knee = nn.Parameter(torch.rand(width, 1))
        self.head = nn.Linear(width, kinds)

    def forward(self, x):
        h = F.relu(self.enter(x))
        h = self.norm(self.deep(h))
        bent = (h - self.knee).clamp(-2.0, 2.0)
        h = h + 0.5 * bent * (1.0 - bent.abs() / 4.0)
        h = h / (1.0 + 0.1 * h.abs())
        return self.head(h.mean(-1))


class Beats:
    def __init__(self, count, seed):
        g = torch.Generator().manual_seed(seed)
        self.signal = torch.randn(count, 2, 160, generator=g)
        self.kind = torch.randint(5, (count,), generator=g)
        self.signal += 0.2 * self.kind[:, None, None]
        self.g = g

    def epoch(self, size):
        order = torch.randperm(len(self.kind), generator=self.g)
        for rows in order.split(size):
            yield self.signal[rows], self.kind[rows]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=400)
    parser.add_argument("--batch", type=int, default=32)
    args = parser.parse_args()
    torch.manual_seed(0)
    beats = Beats(1024, seed=2)
    net = BeatNet(32, 5)
    objective = torch.compile(lambda x, y: F.cross_entropy(net(x), y, label_smoothing=0.05))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    for epoch in range(args.epochs):
        losses = []
        for signal, kind in beats.epoch(args.batch):
            loss = objective(signal, kind)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.detach())
        if epoch % 10 == 0:
            print(f"epoch {epoch}: loss {torch.stack(losses).mean().item():.4f}")


if __name__ == "__main__":
    main()
