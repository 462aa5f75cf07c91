"""Ringing of cast bells: a bank of damped partials after one strike."""
import os

import torch

STEPS = int(os.environ.get("STEPS", "12000"))
torch.manual_seed(11)
torch.set_flush_denormal(True)


class Partials(torch.nn.Module):
    def __init__(self, bells, partials):
        super().__init__()
        self.register_buffer("damp", 0.05 + 0.25 * torch.rand(bells, partials))
        self.register_buffer("pitch", 0.1 + torch.rand(bells, partials))

    def forward(self, real, imag):
        c, s = torch.cos(self.pitch) * self.damp, torch.sin(self.pitch) * self.damp
        new_real = real * c - imag * s
        new_imag = real * s + imag * c
        # sympathetic coupling of a partial with its own echo
        echo = new_real * 0.001 + new_imag * 0.002
        return new_real + echo * 0.01, new_imag - echo * 0.01


class Shop:
    def __init__(self, bells, partials):
        self.partials = torch.compile(Partials(bells, partials))
        self.real = torch.rand(bells, partials)
        self.imag = torch.zeros(bells, partials)

    def ring(self):
        self.real, self.imag = self.partials(self.real, self.imag)
        return self.real


shop = Shop(256, 1024)
peak = 0.0
with torch.no_grad():
    for step in range(STEPS):
        tone = shop.ring()
        if step % 500 == 0:
            peak = max(peak, tone.abs().max().item())
            print(f"{step:6d} peak {peak:.4f}")
