import os
import math

import torch

torch.set_num_threads(1)
torch.manual_seed(8)

STEPS = int(os.environ.get("STEPS", "65000"))
SNAPSHOTS = 320
ANTENNAS = 24
BINS = 128

freqs = torch.linspace(1.0e9, 1.2e9, BINS)
positions = torch.arange(ANTENNAS) * 0.12


def steering(direction):
    delay = positions * torch.sin(direction) / 3.0e8
    phase = 2 * math.pi * delay[:, None] * freqs[None, :]
    return torch.cos(phase), torch.sin(phase)


@torch.compile
def beam_power(re, im, direction):
    c, s = steering(direction)
    out_re = (re * c + im * s).sum(dim=1)
    out_im = (im * c - re * s).sum(dim=1)
    return (out_re.square() + out_im.square()).mean(dim=0)


re = torch.randn(SNAPSHOTS, ANTENNAS, BINS)
im = torch.randn(SNAPSHOTS, ANTENNAS, BINS)
scan = torch.linspace(-1.0, 1.0, 181)

best = torch.zeros(BINS)
for step in range(STEPS):
    power = beam_power(re, im, scan[step % 181])
    best = torch.maximum(best, power)

print("peak", best.max().item(), "mean", best.mean().item())
