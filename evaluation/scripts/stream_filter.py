"""Streams denoised audio blocks out of a bank of nonlinear resonators."""
import os
import time

import torch

STEPS = int(os.environ.get("STEPS", 12000))
BANDS, BLOCK = 128, 1024
torch.set_num_threads(1)


def excite(seed, count):
    gen = torch.Generator().manual_seed(seed)
    t = torch.arange(BLOCK) / 16000.0
    for k in range(count):
        tone = torch.sin(2 * torch.pi * (200 + (k % 50)) * t)
        yield tone + 0.3 * torch.randn(BLOCK, generator=gen)


@torch.compile
def denoised(blocks, freq, floor):
    for block in blocks:
        x = block[None, :] * freq[:, None]
        env = torch.sqrt(x * x + 1e-6)
        gate = torch.sigmoid((env - floor[:, None]) * 12.0)
        y = torch.tanh(x * gate) + 0.1 * torch.sin(3.0 * x) * (1 - gate)
        soft = y / (1 + y.abs())
        out = (soft * torch.exp(-0.5 * (env - 0.7) ** 2)).sum(0)
        floor = 0.995 * floor + 0.005 * env.mean(1)
        yield out, floor


def main():
    freq = torch.logspace(-1, 0.5, BANDS)
    floor = torch.full((BANDS,), 0.2)
    energy = 0.0
    every = max(1, STEPS // 10)
    t0, s0 = None, 0
    with torch.no_grad():
        for step, (out, level) in enumerate(denoised(excite(7, STEPS), freq, floor)):
            if step == 2:
                t0, s0 = time.perf_counter(), step
            energy += out.square().mean().item()
            if step > 2 and step % every == 0:
                ms = (time.perf_counter() - t0) / (step - s0) * 1e3
                print(f"block {step}: energy {energy / (step + 1):.4f} floor {level.mean():.4f}  {ms:.3f} ms/step")
                t0, s0 = time.perf_counter(), step


if __name__ == "__main__":
    main()
