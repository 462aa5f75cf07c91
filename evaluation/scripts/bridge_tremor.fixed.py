"""Ambient-vibration monitoring of a cable-stayed bridge.

Accelerometers on the deck are read in overlapping windows.  Each window is projected
on a bank of complex Morlet atoms; the ridge of the scalogram gives the modal
frequencies, which are followed over time.
"""
import os
import functools
import math
import time

import torch
from torch import nn

torch.set_num_threads(1)


@functools.lru_cache(maxsize=None)
def morlet_bank(count, length, rate, low, high, cycles=8.0):
    """Real and imaginary parts of `count` unit-energy atoms, log-spaced in frequency."""
    grid = torch.linspace(math.log(low), math.log(high), count, dtype=torch.float64)
    freq = torch.exp(grid).unsqueeze(1)
    t = (torch.arange(length, dtype=torch.float64) - length / 2) / rate
    width = cycles / (2.0 * math.pi * freq)
    gauss = torch.exp(-0.5 * (t / width) ** 2)
    re = gauss * torch.cos(2.0 * math.pi * freq * t)
    im = gauss * torch.sin(2.0 * math.pi * freq * t)
    norm = torch.sqrt((re * re + im * im).sum(dim=1, keepdim=True))
    return (re / norm).float(), (im / norm).float()


class ModalTracker(nn.Module):
    def __init__(self, rate=200.0, length=2048, count=96, low=0.4, high=40.0):
        super().__init__()
        self.settings = (count, length, rate, low, high)
        self.bank = morlet_bank(*self.settings)
        ladder = torch.exp(torch.linspace(math.log(low), math.log(high), count))
        self.register_buffer("ladder", ladder)
        self.register_buffer("taper", torch.hann_window(length, periodic=False))

    def forward(self, window, floor):
        re, im = self.bank
        x = window - window.mean(dim=-1, keepdim=True)
        x = x * self.taper
        a = x @ re.t()
        b = x @ im.t()
        power = a * a + b * b
        floor = 0.95 * floor + 0.05 * power
        prominence = torch.log1p(power / (floor + 1e-6))
        weight = torch.softmax(6.0 * prominence, dim=-1)
        ridge = (weight * self.ladder).sum(dim=-1)
        return ridge, prominence.amax(dim=-1), floor


class Deck:
    """Three lightly damped modes, seen by `sensors` accelerometers with noise."""

    def __init__(self, sensors, length, rate, seed=4):
        g = torch.Generator().manual_seed(seed)
        self.windows = []
        t = torch.arange(length) / rate
        shapes = torch.randn(sensors, 3, generator=g)
        for k in range(12):
            f = torch.tensor([0.82, 2.35, 7.1]) * (1.0 + 0.002 * k)
            phase = torch.rand(3, generator=g) * 2 * math.pi
            modes = torch.sin(2 * math.pi * f.unsqueeze(1) * t + phase.unsqueeze(1))
            self.windows.append(shapes @ modes + 0.4 * torch.randn(sensors, length, generator=g))

    def window(self, n):
        return self.windows[n % len(self.windows)]


def follow(tracker, deck, sensors, count, windows):
    floor = torch.full((sensors, count), 0.05)
    smooth = None
    alarms = 0
    for n in range(windows):
        ridge, strength, floor = tracker(deck.window(n), floor)
        smooth = ridge if smooth is None else 0.9 * smooth + 0.1 * ridge
        shift = float((ridge - smooth).abs().median())
        alarms += shift > 6.0
        if n % 2000 == 0:
            print(f"window {n:5d}  median ridge {float(smooth.median()):.4f} Hz  strength {float(strength.mean()):.3f}")
    return smooth, alarms


def main(windows=int(os.environ.get("STEPS", "10000")), sensors=24):
    torch.manual_seed(0)
    model = ModalTracker().eval()
    count, length, rate = model.settings[:3]
    deck = Deck(sensors, length, rate)
    tracker = torch.compile(model)
    start = time.perf_counter()
    with torch.no_grad():
        smooth, alarms = follow(tracker, deck, sensors, count, windows)
    spent = time.perf_counter() - start
    print(f"{windows} windows, {alarms} alarms, checksum {float(smooth.sum()):.4f}")
    print(f"{spent:.1f} s, {1e3 * spent / windows:.2f} ms a window")


if __name__ == "__main__":
    main()
