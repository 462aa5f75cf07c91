"""Streaming quality control for a regional seismic array.

Every second of data arrives as one block (stations x samples).  We compute a
set of trace attributes, run an STA/LTA detector over the array and keep the
traces of the stations that triggered for the associator downstream.
"""
import math
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

N_STATIONS = 72
RATE = 50
WINDOW_S = 20


class ArrayMonitor(nn.Module):
    def __init__(self, sta: int = 25, lta: int = 250, corner: float = 0.08):
        super().__init__()
        self.sta = sta
        self.lta = lta
        taps = torch.hann_window(31, periodic=False)
        self.register_buffer("taps", (taps / taps.sum()).view(1, 1, -1))
        self.corner = nn.Parameter(torch.tensor(corner), requires_grad=False)

    def energy_ratio(self, x: torch.Tensor) -> torch.Tensor:
        power = F.conv1d(x.square().unsqueeze(1), self.taps, padding=15).squeeze(1)
        total = power.cumsum(dim=1)
        short = (total[:, self.lta:] - total[:, self.lta - self.sta:-self.sta]) / self.sta
        long = (total[:, self.lta:] - total[:, :-self.lta]) / self.lta
        return short / (long + 1e-6)

    def forward(self, block: torch.Tensor):
        traces = list(block.unbind(0))
        x = block - block.mean(dim=1, keepdim=True)
        scale = x.abs().amax(dim=1, keepdim=True).clamp_min(1e-6)
        x = x / scale
        x = x - self.corner * F.pad(x[:, :-1], (1, 0))
        ratio = self.energy_ratio(x)
        peak, onset = ratio.max(dim=1)
        attributes = {
            "rms": x.square().mean(dim=1).sqrt() * scale.squeeze(1),
            "zero_cross": (x[:, 1:] * x[:, :-1] < 0).float().mean(dim=1),
            "peak": peak,
            "onset": onset + self.lta,
        }
        return traces, attributes


class FeedSimulator:
    """Coloured noise with an occasional wave front crossing the array."""

    def __init__(self, n: int, samples: int, seed: int = 11):
        self.gen = torch.Generator().manual_seed(seed)
        self.pool = torch.randn(8, n, samples, generator=self.gen)
        self.delay = torch.randint(0, 250, (n,), generator=self.gen)
        t = torch.arange(200) / RATE
        self.wavelet = 9.0 * torch.exp(-2.5 * t) * torch.sin(2 * math.pi * 6.0 * t)

    def __getitem__(self, i: int) -> torch.Tensor:
        block = self.pool[i % 8].clone()
        if i % 5 == 0:
            for s in range(0, block.shape[0], 3):
                at = 480 + int(self.delay[s])
                block[s, at:at + 200] += self.wavelet
        return block


def main():
    steps = int(os.environ.get("STEPS", "240"))
    torch.manual_seed(0)
    feed = FeedSimulator(N_STATIONS, RATE * WINDOW_S)
    codes = [f"GR{i:03d}" for i in range(N_STATIONS)]
    monitor = torch.compile(ArrayMonitor().eval())

    picks, kept = 0, {}
    with torch.no_grad():
        for i in range(steps):
            block = feed[i]
            traces, attr = monitor(block)
            hit = (attr["peak"] > 4.0).nonzero().flatten().tolist()
            if hit:
                kept = {codes[s]: traces[s] for s in hit}
                picks += len(hit)

    level = sum(float(t.abs().max()) for t in kept.values()) / max(len(kept), 1)
    print(f"blocks {steps}  picks {picks}  last event: {len(kept)} stations, mean peak {level:.2f}")


if __name__ == "__main__":
    main()
