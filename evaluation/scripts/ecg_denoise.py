"""Batch clean-up of ambulatory ECG strips with a small gated residual filter bank."""
import os
import time

import torch
from torch import nn
import torch.nn.functional as F

LEADS, SAMPLES, BATCH = 3, 2000, 12


class GatedBlock(nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.filt = nn.Conv1d(channels, 2 * channels, 3, padding=dilation, dilation=dilation)
        self.scale = nn.Parameter(torch.ones(channels, 1))
        self.shift = nn.Parameter(torch.zeros(channels, 1))

    def forward(self, x):
        a, b = self.filt(x).chunk(2, dim=1)
        h = torch.tanh(a) * torch.sigmoid(b)
        mean = h.mean(dim=1, keepdim=True)
        var = (h - mean).pow(2).mean(dim=1, keepdim=True)
        h = (h - mean) * torch.rsqrt(var + 1e-5) * self.scale + self.shift
        return x + F.softplus(h) - 0.693


class EcgDenoiser(nn.Module):
    def __init__(self, channels=8, depth=4):
        super().__init__()
        self.stem = nn.Conv1d(LEADS, channels, 5, padding=2)
        self.blocks = nn.ModuleList(GatedBlock(channels, 2 ** i) for i in range(depth))
        self.head = nn.Conv1d(channels, LEADS, 1)

    def load_weights(self, seed, compile_model=True):
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for p in self.parameters():
                if p.dim() > 2:
                    p.copy_(torch.randn(p.shape, generator=generator) * 0.15)
        self.eval()
        if compile_model:
            self = torch.compile(self)

    def forward(self, strip):
        baseline = strip.mean(dim=-1, keepdim=True)
        x = self.stem(strip - baseline)
        for block in self.blocks:
            x = block(x)
        return strip - baseline - self.head(x)


def synth_strips(generator):
    t = torch.arange(SAMPLES) / 250.0
    rate = 1.0 + 0.4 * torch.rand(BATCH, 1, 1, generator=generator)
    beats = torch.exp(-60.0 * torch.sin(torch.pi * rate * t) ** 2)
    noise = 0.1 * torch.randn(BATCH, LEADS, SAMPLES, generator=generator)
    return beats + noise


def main():
    torch.set_num_threads(1)
    torch.manual_seed(7)
    steps = int(os.environ.get("STEPS", "240"))
    generator = torch.Generator().manual_seed(2)
    denoiser = EcgDenoiser()
    denoiser.load_weights(seed=7, compile_model=True)
    pool = [synth_strips(generator) for _ in range(8)]
    energy = 0.0
    half = time.perf_counter()
    with torch.inference_mode():
        for step in range(steps):
            if step == steps // 2:
                half = time.perf_counter()
            cleaned = denoiser(pool[step % len(pool)])
            if step % 20 == 19:
                energy += cleaned.square().mean().item()
    per_step = (time.perf_counter() - half) / max(1, steps - steps // 2)
    print(f"residual energy {energy:.4f}")
    print(f"{per_step * 1e3:.3f} ms per step, {BATCH / per_step:.0f} strips/s")


if __name__ == "__main__":
    main()
