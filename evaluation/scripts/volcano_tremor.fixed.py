"""Detects tremor in seismic traces with a bank of nonlinear filters."""
import argparse
import functools
import logging

import torch
from torch import nn

log = logging.getLogger("tremor")


def traced(fn):
    """Marks entry and exit of a stage in the debug log."""
    @functools.wraps(fn)
    def inner(*args, **kwargs):
        if not torch.compiler.is_compiling(): log.debug("enter %s", fn.__name__)
        result = fn(*args, **kwargs)
        if not torch.compiler.is_compiling(): log.debug("leave %s", fn.__name__)
        return result
    return inner


@traced
def band(x, low, high):
    centre = low * x / (1.0 + (low * x).abs())
    return centre / (1.0 + high * x * x) + 0.1 * x.clamp(-1.0, 1.0)


@traced
def rectify(x):
    return torch.sqrt(x * x + 1e-4) - 0.01


class Bank(nn.Module):
    def __init__(self, bands):
        super().__init__()
        self.low = nn.Parameter(torch.linspace(0.5, 3.0, bands))
        self.high = nn.Parameter(torch.linspace(0.1, 0.9, bands))

    def forward(self, x):
        total = torch.zeros_like(x)
        for low, high in zip(self.low, self.high):
            total = total + rectify(band(x, low, high))
        return total.mean(-1), total.amax(-1)


class Percentiles:
    """Keeps sorted amplitudes of the last traces for the alarm threshold."""

    def __init__(self, keep):
        self.values, self.keep = [], keep

    def push(self, tensor):
        self.values.extend(tensor.tolist())
        self.values = self.values[-self.keep:]
        return sorted(self.values)[int(0.99 * (len(self.values) - 1))]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=18000)
    args = ap.parse_args()
    logging.basicConfig(level=logging.WARNING)
    torch.manual_seed(14)
    bank = torch.compile(Bank(6))
    thresholds = Percentiles(1500)
    traces = torch.randn(64, 128, 512)
    alarm = 0
    with torch.no_grad():
        for step in range(args.steps):
            level, peak = bank(traces[step % 64])
            limit = thresholds.push(peak)
            alarm += int((peak > limit).sum())
            if step % 100 == 0:
                print(f"window {step:5d} level {level.mean():.4f} limit {limit:.3f} alarms {alarm}")


if __name__ == "__main__":
    main()
