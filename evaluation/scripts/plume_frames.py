"""Odour plume forecast around a composting plant.

An ensemble of emission scenarios is rendered to concentration-exceedance maps
(one frame per scenario); gauges around the site are read from the frames and a
running score per scenario is kept.
"""
import os
import time

import torch

torch.set_num_threads(1)
torch.manual_seed(5)

SCENARIOS = 96
HEIGHT = 384
WIDTH = 256
GAUGES = 40
STEPS = int(os.environ.get("STEPS", "4000"))


@torch.compile
def render(strength, drift, background, frames):
    """Fill `frames` with the exceedance probability of every scenario."""
    level = strength[:, None, None] * background + drift[:, None, :]
    frames.copy_(torch.sigmoid(level - 0.5))


class Site:
    def __init__(self):
        yy = torch.linspace(-1, 1, HEIGHT)[:, None]
        xx = torch.linspace(-1, 1, WIDTH)[None, :]
        self.background = torch.exp(-3.0 * (yy.square() + (xx - 0.2).square()))
        self.gauge_y = torch.randint(0, HEIGHT, (GAUGES,))
        self.gauge_x = torch.randint(0, WIDTH, (GAUGES,))
        self.observed = torch.rand(GAUGES)

    def read(self, frames):
        return frames[:, self.gauge_y, self.gauge_x]

    def misfit(self, readings):
        return (readings - self.observed).square().mean(1)


class Ensemble:
    """Random-walk emission scenarios with resampling of the worst ones."""

    def __init__(self):
        self.strength = 1.0 + 0.3 * torch.randn(SCENARIOS)
        self.drift = 0.2 * torch.randn(SCENARIOS, WIDTH)
        self.score = torch.zeros(SCENARIOS)

    def advance(self):
        self.strength += 0.01 * torch.randn(SCENARIOS)

    def update(self, misfit):
        self.score.mul_(0.95).add_(misfit, alpha=0.05)
        worst, best = self.score.argmax(), self.score.argmin()
        self.strength[worst] = self.strength[best]
        self.drift[worst] = self.drift[best]


def main():
    site = Site()
    ensemble = Ensemble()
    started = time.perf_counter()
    for step in range(STEPS):
        ensemble.advance()
        frames = torch.empty(SCENARIOS, HEIGHT, WIDTH)
        render(ensemble.strength, ensemble.drift, site.background, frames)
        misfit = site.misfit(site.read(frames))
        ensemble.update(misfit)
        if step % 500 == 0:
            print(f"{step:5d}  misfit {misfit.mean().item():.4f}  {time.perf_counter() - started:.1f}s")


if __name__ == "__main__":
    main()
