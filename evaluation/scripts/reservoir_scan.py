"""Leaky multi-channel filter bank in front of a linear readout.

x: (batch, time, units) -> y: (batch, time, units) -> classes
"""
import time

import numpy as np
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(11)

BATCH, STEPS, UNITS, CLASSES = 48, 40, 256, 12


class LeakyBank(nn.Module):
    def __init__(self, units):
        super().__init__()
        self.register_buffer("decay", torch.linspace(0.6, 0.98, units))
        self.register_buffer("drive", torch.linspace(1.0, 0.2, units))

    def forward(self, x):
        y = torch.empty_like(x)
        y[:, 0] = self.drive * x[:, 0]
        for t in range(1, x.shape[1]):
            y[:, t] = self.decay * y[:, t - 1] + self.drive * x[:, t]
        return y


class Readout(nn.Module):
    def __init__(self, units, classes):
        super().__init__()
        self.bank = LeakyBank(units)
        self.fc = nn.Linear(units, classes)

    @torch.no_grad()
    def features(self, x):
        y = self.bank(x)
        return torch.tanh(y).mean(1)

    def forward(self, feats):
        return self.fc(feats)


def batches():
    protos = torch.randn(CLASSES, STEPS, UNITS) * 0.5
    while True:
        label = torch.randint(0, CLASSES, (BATCH,))
        yield protos[label] + torch.randn(BATCH, STEPS, UNITS), label


def main():
    model = Readout(UNITS, CLASSES)
    extract = torch.compile(model.features)
    opt = torch.optim.SGD(model.fc.parameters(), lr=0.5)

    source = batches()
    stock = [next(source) for _ in range(8)]

    for x, _ in stock[:3]:
        extract(x)

    step_ms, losses = [], []
    for it in range(160):
        x, label = stock[it % len(stock)]
        tic = time.perf_counter()
        feats = extract(x)
        loss = F.cross_entropy(model(feats), label)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        step_ms.append(1e3 * (time.perf_counter() - tic))
        losses.append(loss.detach())
        if it % 40 == 39:
            print(f"iter {it + 1:4d}  loss {torch.stack(losses[-40:]).mean():.4f}")

    print(f"steps: median {np.median(step_ms):.2f} ms")


if __name__ == "__main__":
    main()
