"""Ring oscillators built from inverters: spread of frequency over corners.

Each row is one chip sample with its own start-up noise; each column one stage.  A stage
keeps part of its charge and adds the saturated inverse of its driver's voltage.
"""
import os
import time
from typing import NamedTuple

import torch

CHIPS = 384
STAGES = 2047
STEPS = int(os.environ.get("STEPS", "2400"))
WARMUP = 40
KEEP = 0.35
GAIN = -3.5


class Lot(NamedTuple):
    volts: torch.Tensor
    noise: torch.Tensor


def draw_lot(seed):
    gen = torch.Generator().manual_seed(seed)
    start = 0.2 * torch.randn(CHIPS, STAGES, generator=gen)
    corner = 1.0 + 0.1 * torch.randn(CHIPS, 1, generator=gen)
    return Lot(start * corner, corner)


def driver_of(volts):
    """Voltage at the input of every stage; the last stage drives the first."""
    return torch.roll(volts, 1, dims=1)


def transfer(v_in):
    return torch.tanh(GAIN * v_in)


@torch.compile
def tick(volts):
    return KEEP * volts + transfer(driver_of(volts))


class Counter:
    """Counts rising edges at a handful of monitored stages."""

    def __init__(self, stages, volts):
        self.stages = stages
        self.high = volts[:, stages] > 0
        self.edges = torch.zeros(volts.shape[0], len(stages))

    def look(self, volts):
        now = volts[:, self.stages] > 0
        self.edges += (now & ~self.high).float()
        self.high = now

    def spread(self):
        per_chip = self.edges.mean(dim=1)
        return per_chip.mean().item(), per_chip.std().item()


def simulate(lot, steps, counter=None, every=5):
    volts = lot.volts
    for k in range(steps):
        volts = tick(volts)
        if counter is not None and k % every == 0:
            counter.look(volts)
    return lot._replace(volts=volts)


@torch.no_grad()
def main():
    lot = draw_lot(17)
    lot = simulate(lot, WARMUP)
    counter = Counter([0, 511, 1023, 1535], lot.volts)

    spent = 0.0
    for window in range(4):
        begin = time.perf_counter()
        lot = simulate(lot, STEPS // 4, counter)
        spent += time.perf_counter() - begin
        mean, std = counter.spread()
        swing = lot.volts.abs().mean().item()
        print(f"window {window}  edges {mean:.2f} +- {std:.2f}  swing {swing:.4f}")
    print(f"{1e3 * spent / STEPS:.3f} ms/step")


if __name__ == "__main__":
    main()
