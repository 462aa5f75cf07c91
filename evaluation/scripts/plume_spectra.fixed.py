"""Retrieve the columnar mass of a volcanic plume from push-broom infrared spectra.

Every frame of the spectrometer is one scan line: a few hundred ground pixels by a
few hundred channels.  A haze model (amount and Angstrom exponent) and the fringes of
the window are removed, the plume index is read off in a matched-filter
window, and the haze parameters are nudged along so that the clear channels stay flat.
"""
import os
import time
from typing import NamedTuple

import torch

torch.set_num_threads(1)


class Channels(NamedTuple):
    wavelength: torch.Tensor   # micrometres
    solar: torch.Tensor
    target: torch.Tensor       # matched-filter weights
    clear: torch.Tensor        # weights of the plume-free channels


class Haze(NamedTuple):
    amount: torch.Tensor
    exponent: torch.Tensor
    fringe: torch.Tensor       # radians at one micrometre


def make_channels(count):
    lam = torch.linspace(0.9, 2.5, count)
    solar = 1.6 / (lam * lam + 0.2)
    line = torch.exp(-((lam - 2.05) / 0.08) ** 2)
    target = line - line.mean()
    target = target / target.norm()
    clear = torch.where(line < 0.02, 1.0, 0.0)
    tilt = (lam - 1.5) * clear
    return Channels(lam, solar, target, tilt / tilt.abs().sum())


def make_lines(ch, pixels, how_many, seed=13):
    g = torch.Generator().manual_seed(seed)
    lines = []
    across = torch.linspace(-1, 1, pixels).unsqueeze(1)
    for k in range(how_many):
        plume = 0.4 * torch.exp(-((across - 0.1 * (k % 7)) / 0.2) ** 2)
        albedo = 0.25 + 0.1 * torch.rand(pixels, 1, generator=g)
        haze = torch.exp(-0.18 * ch.wavelength ** -1.3)
        signal = albedo * ch.solar * haze * (1.0 - plume * ch.target.clamp_min(0))
        noise = 0.003 * torch.randn(pixels, ch.wavelength.numel(), generator=g)
        lines.append((signal + noise).contiguous())
    return lines


def channel_gain(ch, haze):
    """What a channel has to be multiplied with to undo haze, etalon fringes and sunlight."""
    depth = haze.amount * torch.pow(ch.wavelength, -haze.exponent)
    etalon = 1.0 + 0.015 * torch.cos(haze.fringe / ch.wavelength)
    return (1.0 + depth + 0.5 * depth * depth) / (ch.solar * etalon)


def retrieve(radiance, ch, gain):
    reflectance = radiance * gain
    level = reflectance.mean(dim=1)
    index = -(reflectance * ch.target).sum(dim=1) / level
    slope = (reflectance * ch.clear).sum(dim=1) / level
    return index, level, slope


class Retrieval:
    def __init__(self, channels):
        self.ch = channels
        self.haze = Haze(torch.tensor(0.05), torch.tensor(1.0), torch.tensor(180.0))
        self.invert = torch.compile(retrieve)

    def line(self, radiance):
        index, level, slope = self.invert(radiance, self.ch, channel_gain(self.ch, self.haze))
        tilt = slope.mean()
        amount = (self.haze.amount - 0.3 * tilt).clamp(0.0, 1.0)
        exponent = (self.haze.exponent + 0.05 * tilt).clamp(0.5, 2.5)
        self.haze = Haze(amount, exponent, self.haze.fringe + 1e-4)
        return index, level


def main(scans=int(os.environ.get("STEPS", "18000")), pixels=1280, channels=424):
    torch.manual_seed(0)
    ch = make_channels(channels)
    lines = make_lines(ch, pixels, 14)
    retrieval = Retrieval(ch)
    mass = torch.zeros(pixels)
    began = time.perf_counter()
    with torch.no_grad():
        for n in range(scans):
            index, level = retrieval.line(lines[n % len(lines)])
            mass = 0.99 * mass + 0.01 * index
            if n % 5000 == 0:
                amount, exponent, _ = (float(v) for v in retrieval.haze)
                print(f"line {n:5d}  peak index {float(index.max()):.4f}  haze {amount:.4f} / {exponent:.3f}")
    took = time.perf_counter() - began
    print(f"mass {float(mass.sum()):.5f}  albedo {float(level.mean()):.4f}")
    print(f"{scans} lines in {took:.1f} s, {1e3 * took / scans:.2f} ms a line")


if __name__ == "__main__":
    main()
