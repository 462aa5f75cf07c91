"""Subband beamformer for a small microphone array with adaptive post-weights.

Frames are already in the STFT domain. Each frame is phase-aligned, cleaned per subband,
and combined; the output level per look direction drives a slow gain.
"""
import os
import time

import torch

MICS = 6
BANDS = 257
FRAMES = 100
LOOKS = 3


class Array:
    def __init__(self, spacing=0.045, rate=16000, c=343.0):
        freq = torch.linspace(0, rate / 2, BANDS)
        angle = torch.linspace(-0.9, 0.9, LOOKS)
        pos = (torch.arange(MICS) - (MICS - 1) / 2) * spacing
        delay = torch.sin(angle)[:, None] * pos[None] / c
        phase = 6.283185307 * delay[:, :, None] * freq
        self.steer = torch.polar(torch.full_like(phase, 1.0 / MICS), phase)


class BeamFormer:
    def __init__(self, array):
        self.steer = array.steer.unsqueeze(-1)
        self.tilt = torch.linspace(0.8, 1.2, BANDS).view(1, BANDS, 1)

    def frame_block(self, spec, noise, gain):
        aligned = spec.unsqueeze(0) * self.steer
        ref = aligned[:, :1]
        resid = aligned - 0.5 * ref * gain
        cleaned = aligned * 0.9 - 0.1 * resid * self.tilt
        beam = cleaned.sum(1)
        power = beam.abs().square()
        mask = power / (power + noise)
        out = beam * mask * self.tilt
        level = out.abs().square().mean((1, 2))
        return out, level


class Scene:
    def __init__(self, seed=13):
        self.gen = torch.Generator().manual_seed(seed)
        self.colour = torch.linspace(1.5, 0.2, BANDS).view(1, BANDS, 1)

    def block(self):
        shape = (MICS, BANDS, FRAMES)
        re = torch.randn(shape, generator=self.gen)
        im = torch.randn(shape, generator=self.gen)
        return torch.complex(re, im) * self.colour


def main():
    torch.set_num_threads(1)
    steps = int(os.environ.get("STEPS", "240"))

    former = BeamFormer(Array())
    block = torch.compile(former.frame_block)
    scene = Scene()
    gain = torch.ones(LOOKS, 1, 1, 1)
    noise = torch.full((LOOKS, BANDS, 1), 0.3)

    times, energy = [], torch.zeros(LOOKS)
    with torch.no_grad():
        for _ in range(steps):
            spec = scene.block()
            t0 = time.perf_counter()
            out, level = block(spec, noise, gain)
            times.append(time.perf_counter() - t0)
            energy += level
            gain = 0.95 * gain + 0.05 / (1.0 + level.view(-1, 1, 1, 1))

    times = sorted(times[len(times) // 2:])
    print("look energy", [round(e, 4) for e in (energy / steps).tolist()])
    print(f"median block {times[len(times) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
