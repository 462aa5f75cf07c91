"""Denoise sonar pings of any length with a small residual convolution network."""
import os

import numpy as np
import torch
from torch import nn

DEVICE = torch.device("cuda")
STEPS = int(os.environ.get("STEPS", "300"))
CHANNELS, SHORTEST, LONGEST = 48, 8_000, 40_000

torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = True


class PingBlock(nn.Module):
    def __init__(self, dilation):
        super().__init__()
        pad = 7 * dilation
        self.spread = nn.Conv1d(CHANNELS, CHANNELS, 15, padding=pad, dilation=dilation)
        self.gain = nn.Parameter(torch.full((CHANNELS, 1), 0.5))

    def forward(self, x):
        y = self.spread(x)
        y = torch.tanh(y) * torch.sigmoid(y * self.gain)
        return x + y * self.gain


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Conv1d(1, CHANNELS, 1)
        self.blocks = nn.ModuleList(PingBlock(d) for d in (1, 4))
        self.drop = nn.Conv1d(CHANNELS, 1, 1)

    def forward(self, ping):
        x = self.lift(ping)
        for block in self.blocks:
            x = block(x)
        return ping - torch.tanh(self.drop(x))


class Archive:
    """Pings of a survey, kept as one long track and a table of cuts."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        track = np.cumsum(rng.standard_normal(400_000)).astype(np.float32)
        self.track = torch.from_numpy(track / np.abs(track).max()).to(DEVICE)
        self.lengths = rng.integers(SHORTEST, LONGEST, size=100_000)
        self.starts = rng.integers(0, 400_000 - LONGEST, size=100_000)

    def ping(self, index):
        start, length = int(self.starts[index]), int(self.lengths[index])
        return self.track[start : start + length].clone().view(1, 1, -1)


@torch.no_grad()
def main():
    torch.manual_seed(9)
    archive = Archive(12)
    denoise = torch.compile(Denoiser().to(DEVICE).eval(), dynamic=True)
    residue = torch.zeros((), device=DEVICE)
    for step in range(STEPS):
        ping = archive.ping(step)
        clean = denoise(ping)
        residue = 0.95 * residue + 0.05 * (clean - ping).abs().mean()
        if step % 40 == 39:
            print(f"ping {step + 1} length {ping.shape[-1]} residue {residue.item():.5f}")
    print("residue", round(residue.item(), 5))


main()
