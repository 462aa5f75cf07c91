"""Modal synthesis of a wood-block choir: every voice is a bank of damped rotating modes.

All of them are struck by a short opening figure and then left to ring out; each
call renders one block of samples for all from the current modal state.
"""
import argparse
import math
import time

import numpy as np
import torch

RATE = 16000
BLOCK = 8


def render(a, b, cos, sin, keep, gain):
    """Advance the bank by BLOCK samples; returns the new state and the samples."""
    out = []
    for _ in range(BLOCK):
        turned = (a * cos - b * sin) * keep
        b = (a * sin + b * cos) * keep
        a = turned
        out.append((a * gain + torch.tanh(0.3 * b) * gain).sum(dim=1))
    return a, b, torch.stack(out, dim=1)


class Choir:
    def __init__(self, voices, modes, seed):
        g = torch.Generator().manual_seed(seed)
        base = 180.0 * 2.0 ** (torch.arange(voices) / 24.0)
        ratio = 1.0 + torch.arange(modes) * 0.37 + 0.05 * torch.rand(modes, generator=g)
        freq = (base[:, None] * ratio).remainder(RATE / 2)
        ring = 0.004 + 0.002 * torch.rand(voices, modes, generator=g)
        theta = 2.0 * math.pi * freq / RATE
        self.cos, self.sin = torch.cos(theta), torch.sin(theta)
        self.keep = torch.exp(-1.0 / (ring * RATE))
        self.gain = 1.0 / (1.0 + torch.arange(modes, dtype=torch.float32)).expand(voices, modes).contiguous()
        self.a = torch.zeros(voices, modes)
        self.b = torch.zeros(voices, modes)
        self.render = torch.compile(render)

    def strike(self, voice, strength):
        self.a[voice] += strength

    def block(self):
        self.a, self.b, samples = self.render(
            self.a, self.b, self.cos, self.sin, self.keep, self.gain
        )
        return samples.mean(dim=0)


def score(voices, seed):
    rng = np.random.default_rng(seed)
    figure = {}
    for k, voice in enumerate(rng.permutation(voices)):
        figure.setdefault(k // 2, []).append((int(voice), 0.2 + 0.8 * float(rng.random())))
    return figure


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=12000)
    ap.add_argument("--voices", type=int, default=128)
    ap.add_argument("--modes", type=int, default=384)
    args = ap.parse_args()

    choir = Choir(args.voices, args.modes, 5)
    figure = score(args.voices, 6)
    track = torch.zeros(args.steps, BLOCK)
    began = time.perf_counter()
    with torch.inference_mode():
        for i in range(args.steps):
            for voice, strength in figure.get(i, ()):
                choir.strike(voice, strength)
            track[i] = choir.block()
    spent = time.perf_counter() - began
    level = 20 * torch.log10(track.abs().max() + 1e-9)
    print(f"{track.numel() / RATE:.2f} s of audio in {spent:.1f} s, peak {level.item():.1f} dB")


if __name__ == "__main__":
    main()
