"""Fit Fourier light curves to a catalogue of pulsating stars.

All stars of a field are fitted at once by gradient descent on period, phase,
harmonic amplitudes and a robust noise scale.
"""
import functools
import math
import os
import queue
import threading

import torch
import torch.nn as nn
from torch.utils.flop_counter import FlopCounterMode

STARS = 300
VISITS = 240
HARMONICS = 5


@functools.lru_cache(maxsize=None)
def observing_nights(field: int, visits: int) -> torch.Tensor:
    gen = torch.Generator().manual_seed(100 + field)
    return torch.rand(visits, generator=gen).sort().values * 90.0


class FieldLoader(threading.Thread):
    """Reads the photometry of the fields ahead of the fit."""

    def __init__(self, fields: int, n: int):
        super().__init__(daemon=True)
        self.fields, self.n = fields, n
        self.out = queue.Queue(maxsize=3)
        self.period = 2.0 + 6.0 * torch.rand(STARS, 1)
        self.store = [self.photometry(f) for f in range(fields)]

    def photometry(self, field: int):
        t = observing_nights(field, VISITS)
        arg = 2 * math.pi * t / self.period
        mag = 0.5 * torch.sin(arg) + 0.2 * torch.sin(2 * arg + 0.4) + 0.05 * torch.randn(STARS, VISITS)
        return t, mag

    def run(self):
        for i in range(self.n):
            self.out.put(self.store[i % self.fields])


class LightCurves(nn.Module):
    def __init__(self, period_guess: torch.Tensor):
        super().__init__()
        self.log_period = nn.Parameter(period_guess.log())
        self.sin_amp = nn.ParameterList([nn.Parameter(0.1 * torch.ones(STARS, 1) / (k + 1)) for k in range(HARMONICS)])
        self.cos_amp = nn.ParameterList([nn.Parameter(torch.zeros(STARS, 1)) for k in range(HARMONICS)])
        self.log_sigma = nn.Parameter(torch.full((STARS, 1), -1.5))

    def forward(self, t, mag):
        arg = 2 * math.pi * t / self.log_period.exp()
        model = torch.zeros_like(mag)
        for k, (s, c) in enumerate(zip(self.sin_amp, self.cos_amp)):
            model = model + s * torch.sin((k + 1) * arg) + c * torch.cos((k + 1) * arg)
        z = (mag - model) * torch.exp(-self.log_sigma)
        nll = torch.log1p(z.square() / 4.0) * 2.5 + self.log_sigma
        return {"loss": nll.mean(), "chi": z.detach().square().mean(1), "worst": z.detach().abs().amax(1)}


def main():
    steps = int(os.environ.get("STEPS", "240"))
    torch.manual_seed(0)
    loader = FieldLoader(fields=4, n=steps)
    fit = LightCurves(loader.period * (1 + 0.002 * torch.randn(STARS, 1)))
    with FlopCounterMode(display=False) as meter:
        fit(*loader.store[0])
    compiled = torch.compile(fit)
    optimizer = torch.optim.SGD([
        {"params": [fit.log_period], "lr": 2e-4, "base": 2e-4},
        {"params": [p for n, p in fit.named_parameters() if n != "log_period"], "lr": 0.5, "base": 0.5},
    ], momentum=0.8)
    loader.start()

    best = float("inf")
    for i in range(steps):
        t, mag = loader.out.get()
        for group in optimizer.param_groups:
            group["lr"] = group["base"] * 0.5 * (1 + math.cos(math.pi * i / steps))
        out = compiled(t, mag)
        optimizer.zero_grad()
        out["loss"].backward()
        optimizer.step()
        best = min(best, out["loss"].item())
        if i % 60 == 0:
            print(f"step {i:4d}  loss {best:.4f}  outliers {int((out['worst'] > 6).sum())}")

    print(f"best {best:.4f}  median chi2 {out['chi'].median().item():.3f}  "
          f"nights {observing_nights(0, VISITS).numel()}  matmul flops {meter.get_total_flops()}")


if __name__ == "__main__":
    main()
