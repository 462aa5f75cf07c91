"""Measure how a read-out reacts when one hidden layer of a tabular encoder is pushed along a direction."""
import os
import time

import torch
import torch.nn as nn

torch.manual_seed(12)

FEATURES = 48
HIDDEN = 96
ROWS = 1200
STEPS = int(os.environ.get("STEPS", "6000"))
LOG = 200


class Stage(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.lin = nn.Linear(width, width)
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x):
        z = torch.asinh(self.lin(x)) * self.gain
        return x + z * torch.exp(-z * z) + 0.1 * torch.trunc(3 * z)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(FEATURES, HIDDEN)
        self.stages = nn.ModuleList(Stage(HIDDEN) for _ in range(3))
        self.score = nn.Linear(HIDDEN, 1)

    def forward(self, x):
        x = self.embed(x)
        for s in self.stages:
            x = s(x)
        return self.score(torch.tanh(x)).squeeze(-1)


def push_along(direction, strength):
    def hook(module, inputs, output):
        return output + strength * direction

    return hook


def main():
    base = Encoder().eval().requires_grad_(False)
    rows = [torch.randn(ROWS, FEATURES) for _ in range(8)]
    reference = torch.stack([base(r) for r in rows])
    print(f"reference score {reference.mean().item():.4f} +- {reference.std().item():.4f}")

    direction = torch.nn.functional.normalize(torch.randn(HIDDEN), dim=0)
    base.stages[1].register_forward_hook(push_along(direction, 6.0))
    net = torch.compile(base)
    shift = torch.zeros(())
    t0 = time.perf_counter()
    for step in range(1, STEPS + 1):
        k = step % len(rows)
        delta = (net(rows[k]) - reference[k]).mean()
        shift = 0.99 * shift + 0.01 * delta
        if step % LOG == 0:
            dt = (time.perf_counter() - t0) / LOG * 1e3
            print(f"probe {step} mean shift {shift.item():+.5f} {dt:.3f} ms/step")
            t0 = time.perf_counter()


if __name__ == "__main__":
    main()
