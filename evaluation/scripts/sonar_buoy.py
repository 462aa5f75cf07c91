"""Hydrophone conditioning for a moored passive-sonar buoy.

Sixteen hydrophones are sampled by a 16-bit converter at 96 kHz.  Every block is
scaled to pascals, cleaned of its offset, run through a soft limiter (snapping
shrimp saturate the preamplifier now and then) and reduced to the statistics that
the detector wants: level, impulsiveness and a short-term envelope.
"""
import os
import math
import time
from collections import deque
from dataclasses import dataclass

import numpy as np
import torch

torch.set_num_threads(1)


@dataclass(frozen=True)
class ArrayConfig:
    hydrophones: int = 16
    rate_hz: int = 96_000
    block: int = 32_768
    envelope_hop: int = 256
    volts_full_scale: float = 2.5
    sensitivity_v_per_pa: float = 0.0182
    limiter_pa: float = 60.0


class Converter:
    """Stands in for the ADC driver: returns interleaved blocks as the card stores them."""

    def __init__(self, cfg, seed=11, depth=8):
        rng = np.random.default_rng(seed)
        self.cfg = cfg
        t = np.arange(cfg.block) / cfg.rate_hz
        self.ring = []
        for k in range(depth):
            tone = 2200.0 * np.sin(2 * np.pi * (900 + 40 * k) * t)
            delays = rng.uniform(0, 0.4, size=(cfg.hydrophones, 1))
            wave = tone * np.cos(delays) + rng.normal(0, 700, size=(cfg.hydrophones, cfg.block))
            for _ in range(30):
                c, s = rng.integers(cfg.hydrophones), rng.integers(cfg.block - 64)
                wave[c, s:s + 64] += rng.normal(0, 12_000, size=64)
            wave += rng.normal(0, 150, size=(cfg.hydrophones, 1))
            self.ring.append(np.clip(wave, -32768, 32767).astype(np.int16))
        self.pos = 0

    def read(self):
        block = torch.from_numpy(self.ring[self.pos])
        self.pos = (self.pos + 1) % len(self.ring)
        return block


class Conditioner:
    def __init__(self, cfg):
        self.cfg = cfg
        self.pa_per_count = cfg.volts_full_scale / 32768.0 / cfg.sensitivity_v_per_pa
        g = torch.Generator().manual_seed(3)
        self.gains = 1.0 + 0.02 * torch.randn(cfg.hydrophones, 1, generator=g)
        self.offsets = torch.zeros(cfg.hydrophones, 1)

    def condition(self, counts, offsets):
        cfg = self.cfg
        p = counts.to(torch.float32) * self.pa_per_count
        p = (p - offsets) * self.gains
        p = p / (1.0 + p.abs() / cfg.limiter_pa)
        energy = p * p
        hops = energy.view(cfg.hydrophones, -1, cfg.envelope_hop)
        envelope = hops.mean(dim=-1).sqrt()
        ms = energy.mean(dim=-1)
        fourth = (energy * energy).mean(dim=-1)
        drift = p.mean(dim=-1, keepdim=True)
        return envelope, ms, fourth / (ms * ms + 1e-12), drift


class Detector:
    def __init__(self, threshold_db=3.0, memory=32):
        self.history = deque(maxlen=memory)
        self.threshold_db = threshold_db
        self.events = 0

    def push(self, level_db, kurtosis):
        if len(self.history) == self.history.maxlen:
            floor = sum(self.history) / len(self.history)
            if level_db > floor + self.threshold_db or kurtosis > 40.0:
                self.events += 1
        self.history.append(level_db)


def main(blocks=int(os.environ.get("STEPS", "12000"))):
    torch.manual_seed(0)
    cfg = ArrayConfig()
    adc = Converter(cfg)
    front = Conditioner(cfg)
    process = torch.compile(front.condition)
    detector = Detector()
    started = time.perf_counter()
    with torch.no_grad():
        for n in range(blocks):
            counts = adc.read()
            envelope, ms, kurt, drift = process(counts, front.offsets)
            front.offsets = front.offsets + 0.05 * drift
            level = 10.0 * math.log10(float(ms.mean()) + 1e-12)
            detector.push(level, float(kurt.max()))
            if n % 3000 == 0:
                print(f"block {n:5d}  level {level:6.2f} dB  peak envelope {float(envelope.max()):.3f} Pa")
    took = time.perf_counter() - started
    print(f"{blocks} blocks, {detector.events} events, {took:.1f} s, {1e3 * took / blocks:.2f} ms a block")


if __name__ == "__main__":
    main()
