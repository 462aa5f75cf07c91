"""Dequantises 8-bit normal-float weight blocks and accumulates per-row statistics for an audit report."""
import os
import time

import torch

STEPS = int(os.environ.get("STEPS", 1100))
LEVELS, ROWS, BLOCK, BLOCKS = 256, 512, 64, 16
torch.set_num_threads(1)


class NormalFloat:
    """Quantile codebook of a Student-ish mixture, its spread being re-tuned while the audit runs."""

    def __init__(self, levels):
        self.p = torch.linspace(-1 + 1 / levels, 1 - 1 / levels, levels)
        self.spread = torch.tensor(1.0)

    def retune(self, rms):
        self.spread = 0.99 * self.spread + 0.01 * (1.0 + 0.1 * torch.tanh(rms - 1.0))


@torch.compile
def dequant_stats(codes, absmax, p, spread):
    q = torch.erfinv(p) * 1.41421356 * spread
    levels = q + 0.02 * torch.special.gammaln(2.0 + q * q) - 0.01 * torch.sin(3.0 * q)
    w = levels[codes] * absmax
    return w.mean((1, 2)), w.square().mean((1, 2)), w.abs().amax((1, 2))


def main():
    gen = torch.Generator().manual_seed(1)
    nf = NormalFloat(LEVELS)
    shards = [torch.randint(0, LEVELS, (ROWS, BLOCKS, BLOCK), generator=gen) for _ in range(4)]
    absmax = torch.rand(ROWS, BLOCKS, 1, generator=gen) + 0.5
    every = max(1, STEPS // 10)
    t0, s0 = None, 0
    with torch.no_grad():
        for step in range(STEPS):
            if step == 2:
                t0, s0 = time.perf_counter(), step
            mean, power, peak = dequant_stats(shards[step % 4], absmax, nf.p, nf.spread)
            nf.retune(power.mean().sqrt())
            if step > 2 and step % every == 0:
                ms = (time.perf_counter() - t0) / (step - s0) * 1e3
                print(f"shard {step}: rms {power.mean().sqrt():.4f} peak {peak.max():.3f}  {ms:.3f} ms/step")
                t0, s0 = time.perf_counter(), step


if __name__ == "__main__":
    main()
