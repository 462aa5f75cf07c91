"""Specific-loudness patterns for a hearing-aid fitting study.

Excitation patterns (frames x auditory filters) become compressed loudness,
then a level-free contrast pattern that the fitting loop compares with a target.
"""
import os
import time

import torch
from torch import nn


class LoudnessModel(nn.Module):
    """Stevens-type compression with a threshold in quiet."""

    def __init__(self, filters, exponent=0.23):
        super().__init__()
        self.exponent = exponent
        position = torch.linspace(0, 1, filters)
        self.register_buffer("quiet", 0.02 + 0.3 * (position - 0.45).square())
        self.register_buffer("weight", 1.0 + 0.4 * torch.sin(6.0 * position))

    def compress(self, excitation):
        level = excitation + self.quiet
        return torch.pow(level, self.exponent) * self.weight

    def forward(self, excitation):
        loudness = self.compress(excitation)
        centred = loudness - loudness.mean(dim=-1, keepdim=True)
        span = centred.abs().amax(dim=-1, keepdim=True)
        return centred / span


class Fitting:
    def __init__(self, frames, filters):
        self.model = LoudnessModel(filters)
        self.pattern = torch.compile(self.model)
        self.gain = torch.ones(filters)
        position = torch.linspace(0, 1, filters)
        self.loss_curve = torch.exp(-1.5 * position)

    def hear(self, sound):
        return self.pattern(sound * self.gain * self.loss_curve)

    def nudge(self, pattern, target, rate=0.05):
        error = (target - pattern[::16]).mean(dim=0)
        self.gain = (self.gain * (1.0 + rate * error)).clamp(0.2, 8.0)
        return error.square().mean()


def speech_like(frames, filters, seed):
    gen = torch.Generator().manual_seed(seed)
    position = torch.linspace(0, 1, filters)
    sound = torch.zeros(frames, filters)
    for _ in range(4):
        centre = torch.rand(frames, 1, generator=gen)
        strength = torch.rand(frames, 1, generator=gen)
        sound += strength * torch.exp(-200.0 * (position - centre).square())
    return sound + 0.01 * torch.rand(frames, filters, generator=gen)


def main(frames=512, filters=1024, steps=int(os.environ.get("STEPS", "8000")), warmup=30):
    fitting = Fitting(frames, filters)
    sounds = [speech_like(frames, filters, seed) for seed in range(4)]
    with torch.no_grad():
        targets = [fitting.model(s)[::16] for s in sounds]
        for i in range(warmup):
            fitting.hear(sounds[i % 4])

        begin = time.perf_counter()
        for i in range(steps):
            pattern = fitting.hear(sounds[i % 4])
            error = fitting.nudge(pattern, targets[i % 4])
            if i % 2000 == 0:
                print(f"round {i:5d}   error {error.item():.6f}")
        spent = time.perf_counter() - begin

    low, high = fitting.gain.min().item(), fitting.gain.max().item()
    print(f"gains {low:.3f} .. {high:.3f}   error {error.item():.6f}")
    print(f"{1e3 * spent / steps:.3f} ms/round")


if __name__ == "__main__":
    main()
