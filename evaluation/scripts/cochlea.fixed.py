"""Leaky integrate-and-fire bank behind a cochlear filter: spike features per block."""
import os
import time

import torch

UNITS = 12288
FRAMES = 32


class SpikingBank(torch.nn.Module):
    def __init__(self, units, frames):
        super().__init__()
        self.frames = frames
        tau = torch.linspace(4.0, 40.0, units)
        self.register_buffer("leak", torch.exp(-1.0 / tau))
        self.register_buffer("gain", torch.linspace(0.8, 1.6, units))
        self.register_buffer("threshold", torch.linspace(0.9, 1.4, units))

    def forward(self, current, v, adapt):
        volts = []
        for t in range(self.frames):
            v = self.leak * v + self.gain * current[t]
            fired = v > self.threshold + adapt
            adapt = 0.95 * adapt + torch.where(fired, 0.2, 0.0)
            v = torch.where(fired, v - self.threshold, v)
            volts.append(v)
        return torch.stack(volts), v, adapt


class Readout(torch.nn.Module):
    def __init__(self, units, features):
        super().__init__()
        self.project = torch.nn.Linear(units, features)

    def forward(self, volts):
        return torch.relu(self.project(volts.mean(dim=0))).sum()


def sound_blocks(n, gen):
    phase = torch.linspace(0.0, 3.0, UNITS)
    for k in range(n):
        envelope = 0.3 + 0.2 * torch.sin(phase + 0.1 * k)
        yield envelope * torch.rand(FRAMES, UNITS, generator=gen)


def main():
    steps = int(os.environ.get("STEPS", "240"))
    gen = torch.Generator().manual_seed(3)
    torch.manual_seed(3)
    bank = torch.compile(SpikingBank(UNITS, FRAMES).eval())
    readout = Readout(UNITS, 32).eval()
    v = torch.zeros(UNITS)
    adapt = torch.zeros(UNITS)
    energy, took = 0.0, []

    with torch.no_grad():
        for block in sound_blocks(steps, gen):
            start = time.perf_counter()
            volts, v, adapt = bank(block, v, adapt)
            score = readout(volts)
            took.append(time.perf_counter() - start)
            energy += score.item()

    took.sort()
    print(f"mean response {energy / steps:.4f}, final adaptation {adapt.mean():.4f}")
    print(f"{took[len(took) // 2] * 1e3:.2f} ms per block")


if __name__ == "__main__":
    main()
