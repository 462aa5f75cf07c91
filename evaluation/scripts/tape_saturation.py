"""Tape-style colouring of 16-bit stereo stems, block by block, before mastering."""
import math
import os
import time

import torch

RATE = 48_000
BLOCK = 48_000
STEPS = int(os.environ.get("STEPS", "240"))


def make_stem(seconds, seed):
    """A stand-in for a decoded WAV file: two channels of signed 16-bit samples."""
    g = torch.Generator().manual_seed(seed)
    t = torch.arange(seconds * RATE) / RATE
    left = torch.zeros_like(t)
    right = torch.zeros_like(t)
    for _ in range(6):
        f = 60.0 + 900.0 * torch.rand((), generator=g)
        ph = 2 * math.pi * torch.rand((), generator=g)
        left += 0.12 * torch.sin(2 * math.pi * f * t + ph)
        right += 0.12 * torch.sin(2 * math.pi * f * t - ph)
    stem = torch.stack([left, right]) + 0.01 * torch.randn(2, t.numel(), generator=g)
    return (stem.clamp(-1, 1) * 32767).to(torch.int16)


def saturate(x, drive, bias):
    hot = torch.tanh(drive * x + bias) - torch.tanh(bias)
    even = 0.08 * torch.cos(math.pi * x) * x * x
    odd = 0.05 * torch.sin(3.0 * x)
    return hot / drive + even + odd


def soft_ceiling(y, ceiling=0.97):
    over = torch.relu(y.abs() - 0.8)
    gain = 1.0 - over * (1.0 - torch.exp(-4.0 * over))
    return (y * gain).clamp(-ceiling, ceiling)


def to_unit(pcm):
    return pcm.to(torch.float32) * (1.0 / 32768.0)


def to_pcm(y):
    return torch.round(y * 32767.0).to(torch.int16)


def colour_block(pcm, drive, bias):
    x = to_unit(pcm)
    y = saturate(x, drive, bias)
    mid = 0.5 * (y[0] + y[1])
    side = 0.5 * (y[0] - y[1]) * 1.08
    y = torch.stack([mid + side, mid - side])
    return to_pcm(soft_ceiling(y))


colour = torch.compile(colour_block)


def render(pcm, drive, bias):
    return colour(pcm, drive, bias)


def main():
    torch.set_num_threads(1)
    stem = make_stem(8, seed=11)
    blocks = stem.shape[1] // BLOCK
    drive = torch.tensor(2.2)
    bias = torch.tensor(0.06)
    out = torch.zeros_like(stem)
    started = time.perf_counter()
    with torch.inference_mode():
        for step in range(STEPS):
            at = (step % blocks) * BLOCK
            piece = stem[:, at:at + BLOCK].contiguous()
            out[:, at:at + BLOCK] = render(piece, drive, bias)
    took = time.perf_counter() - started
    rms = (out.float() / 32768).pow(2).mean().sqrt()
    print(f"{STEPS} blocks in {took:.2f} s, rms {20 * math.log10(float(rms) + 1e-9):.2f} dBFS")


if __name__ == "__main__":
    main()
