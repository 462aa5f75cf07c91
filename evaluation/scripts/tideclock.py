"""Tide prediction: phasors of harmonic constituents at many ports."""
import os

import torch

STEPS = int(os.environ.get("STEPS", "12000"))
torch.manual_seed(8)


class Harmonics(torch.nn.Module):
    def __init__(self, ports, waves):
        super().__init__()
        self.register_buffer("turn", torch.polar(torch.ones(ports, waves), torch.rand(ports, waves) * 0.2))
        self.register_buffer("forcing", torch.polar(torch.rand(ports, waves) * 0.01, torch.rand(ports, waves)))

    def forward(self, phasor):
        phasor = phasor * self.turn
        phasor = phasor * 0.99 + self.forcing
        shallow = phasor * phasor * 0.05
        phasor = phasor + shallow - shallow * self.turn
        phasor = phasor * 0.999 - self.forcing * 0.1
        return phasor, phasor.real.sum(-1)


harmonics = torch.compile(Harmonics(256, 512))
phasor = torch.polar(torch.rand(256, 512) * 0.1, torch.rand(256, 512) * 6.0)
high = 0.0

with torch.no_grad():
    for step in range(STEPS):
        phasor, level = harmonics(phasor)
        if step % 400 == 0:
            high = max(high, level.max().item())
            print(f"{step:6d} high water {high:.4f}")
