"""Forecasts river levels with an ensemble; checks a reference first."""
import argparse
from contextlib import contextmanager

import torch
from torch import nn


class Gauge(nn.Module):
    def __init__(self, sensors=40, hidden=256):
        super().__init__()
        self.inp = nn.Linear(sensors, hidden)
        self.beta = nn.Parameter(torch.linspace(0.5, 1.5, hidden))
        self.out = nn.Linear(hidden, 1)
        self.alpha = nn.Parameter(torch.ones(hidden))

    def squash(self, h):
        u = self.alpha * h
        soft = u / (1.0 + u.abs())
        return h * (0.5 + 0.5 * soft) + 0.1 * h.clamp(-1.0, 1.0) - 0.05 * soft * soft

    def forward(self, x):
        h = self.squash(self.inp(x))
        for _ in range(4):
            h = h + self.squash(h * self.beta)
        return self.out(h).squeeze(-1)


class Reference:
    """Reference values for regression tests, computed without the compiler."""

    @contextmanager
    def plain(self):
        torch.compiler.set_stance("force_eager")
        yield self
        torch.compiler.set_stance("default")

    def collect(self, model, x):
        with self.plain(), torch.no_grad():
            return model(x).clone()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=750)
    args = ap.parse_args()
    torch.manual_seed(8)
    model = torch.compile(Gauge().eval())
    probe = torch.randn(64, 40)
    expected = Reference().collect(model, probe)

    levels = torch.randn(4096, 40)
    drift = torch.zeros(4096)
    with torch.no_grad():
        got = model(probe)
        print("largest deviation from reference", (got - expected).abs().max().item())
        for step in range(args.steps):
            forecast = model(levels)
            drift = 0.9 * drift + 0.1 * forecast
            levels = levels + 0.001 * torch.roll(levels, 1, 0)
            levels = levels / levels.std()
            if step % 100 == 0:
                print(f"{step:6d} mean level {drift.mean():.4f}")


if __name__ == "__main__":
    main()
