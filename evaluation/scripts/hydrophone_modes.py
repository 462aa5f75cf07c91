"""Dominant modes of hydrophone array snapshots.

Each record is a set of beams x time-lags matrices.  The strongest modes are
kept, the rest is treated as ambient noise, and a ship-noise index is computed
import os
from the energy left over.
"""
import time

import torch

torch.set_num_threads(1)
torch.manual_seed(13)

RECORDS = 8
LAGS = 512
BEAMS = 16
MODES = 4
STEPS = int(os.environ.get("STEPS", "4000"))


def whiten(x):
    x = x - x.mean(dim=1, keepdim=True)
    return x / (x.square().mean(dim=(1, 2), keepdim=True).sqrt() + 1e-6)


@torch.compile
def analyse(snapshots, taper):
    x = whiten(snapshots * taper[:, None])
    u, s, vh = torch.linalg.svd(x)
    modes = u[:, :, :MODES]
    weights = s[:, :MODES, None] * vh[:, :MODES]
    residual = x - modes @ weights
    index = torch.log1p(residual.square().mean(dim=(1, 2)))
    share = s[:, :MODES].square().sum(1) / s.square().sum(1)
    return index, share


class Recorder:
    """Replays a handful of synthetic snapshots."""

    def __init__(self, n):
        t = torch.linspace(0, 6.28, LAGS)
        self.blocks = []
        for _ in range(n):
            tones = torch.sin(t[:, None] * torch.randint(2, 40, (MODES,)))
            mix = torch.randn(RECORDS, MODES, BEAMS)
            noise = torch.randn(RECORDS, LAGS, BEAMS)
            self.blocks.append(tones @ mix + 0.4 * noise)

    def next(self, step):
        return self.blocks[step % len(self.blocks)]


def main():
    recorder = Recorder(6)
    taper = torch.hann_window(LAGS)
    level = torch.zeros(RECORDS)
    started = time.perf_counter()
    with torch.no_grad():
        for step in range(STEPS):
            index, share = analyse(recorder.next(step), taper)
            level.mul_(0.98).add_(index, alpha=0.02)
            if step % 500 == 0:
                print(f"{step:5d}  level {level.mean().item():.4f}  "
                      f"share {share.mean().item():.3f}  {time.perf_counter() - started:.1f}s")


if __name__ == "__main__":
    main()
