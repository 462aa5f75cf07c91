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
        a, b = torch.view_as_real(phasor).unbind(-1)
        c, d = torch.view_as_real(self.turn).unbind(-1)
        f, g = torch.view_as_real(self.forcing).unbind(-1)
        a, b = a * c - b * d, a * d + b * c
        a, b = a * 0.99 + f, b * 0.99 + g
        p, q = (a * a - b * b) * 0.05, 2 * a * b * 0.05
        a, b = a + p - (p * c - q * d), b + q - (p * d + q * c)
        a, b = a * 0.999 - f * 0.1, b * 0.999 - g * 0.1
        phasor = torch.view_as_complex(torch.stack((a, b), -1))
        return phasor, a.sum(-1)


harmonics = torch.compile(Harmonics(256, 512))
phasor = torch.polar(torch.rand(256, 512) * 0.1, torch.rand(256, 512) * 6.0)
high = 0.0

with torch.no_grad():
    for step in range(STEPS):
        phasor, level = harmonics(phasor)
        if step % 400 == 0:
            high = max(high, level.max().item())
            print(f"{step:6d} high water {high:.4f}")
