"""Levels the loudness of podcasts band by band, like a broadcast compressor, with a meter for the studio."""
import argparse
from dataclasses import dataclass, field

import torch


@dataclass
class Settings:
    ratios: list = field(default_factory=lambda: [1.5, 2.0, 2.5, 3.0, 2.5, 2.0])
    threshold: float = 0.2
    knee: float = 0.05
    drive: float = 1.4


class Leveller(torch.nn.Module):
    def __init__(self, settings, taps=4):
        super().__init__()
        self.settings = settings
        self.register_buffer("mix", torch.softmax(torch.randn(len(settings.ratios), 2), 0))

    def forward(self, bands):
        s = self.settings
        out = torch.zeros_like(bands[0])
        for band, ratio in enumerate(s.ratios):
            wave = bands[band]
            envelope = wave.abs()
            over = (envelope - s.threshold + s.knee).clamp_min(0) * (envelope - s.threshold).clamp(0, 1)
            gain = 1 / (1 + over * (ratio - 1) * (1 + s.knee * over))
            driven = (s.drive * wave * gain).clamp(-1.5, 1.5)
            square = driven * driven
            odd = driven * (27 + square) / (27 + 9 * square)
            even = 0.04 * square * (1 - square / 4) - 0.02 * (2 * square * square - square).clamp(-1, 1)
            shaped = odd + even * (1 - over.clamp_max(1)) + 0.01 * odd * square * (3 - 4 * square).clamp(-2, 2)
            peak = shaped.abs().max().item()
            makeup = 1.0 if peak < 1e-3 else min(0.9 / peak, 4.0)
            out = out + self.mix[band][:, None] * shaped * makeup
        return out.clamp(-1, 1)


@torch.compile
def ballistics(needle, level):
    rise = (level > needle).float() * 0.4 + 0.02
    return needle + rise * (level - needle)


class Meter:
    def __init__(self):
        self.needle = torch.zeros(2)

    def read(self, wave):
        for piece in wave.abs().unfold(1, 2400, 2400).amax(2).unbind(1):
            self.needle = ballistics(self.needle, piece)


def episodes(blocks, bands, samples):
    generator = torch.Generator().manual_seed(9)
    tape = torch.randn(8, bands, 2, samples, generator=generator) * 0.4
    for block in range(blocks):
        yield tape[block % len(tape)]


@torch.inference_mode()
def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=4000)
    parser.add_argument("--samples", type=int, default=48000)
    args = parser.parse_args()
    torch.manual_seed(9)
    settings = Settings()
    level = torch.compile(Leveller(settings))
    meter = Meter()
    for number, bands in enumerate(episodes(args.blocks, len(settings.ratios), args.samples)):
        meter.read(level(bands))
        if number % 400 == 0:
            print(f"block {number}: needle at {meter.needle.tolist()}", flush=True)


if __name__ == "__main__":
    main()
