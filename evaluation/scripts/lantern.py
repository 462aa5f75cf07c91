"""Flicker of lanterns on a river: a running memory of brightness."""
import itertools
import os

import torch

STEPS = int(os.environ.get("STEPS", "12000"))
torch.manual_seed(13)
SHADES = {"warm": 0.7, "cold": 0.3}


class Memory(torch.nn.Module):
    def __init__(self, lamps):
        super().__init__()
        self.register_buffer("seen", torch.zeros(lamps))
        self.bias = torch.nn.Parameter(torch.rand(lamps))

    def forward(self, light):
        total = torch.zeros_like(light)
        for (name, shade), power in itertools.product(SHADES.items(), (1, 2)):
            try:
                gain = SHADES[name + "er"]
            except KeyError:
                gain = shade
            total = total + torch.sigmoid(light * gain - self.bias) * (0.5 ** power)
        self.seen.mul_(0.95).add_(total.mean(0), alpha=0.05)
        return total - self.seen


memory = torch.compile(Memory(1024))
river = torch.randn(8, 256, 1024)

with torch.no_grad():
    for step in range(STEPS):
        glow = memory(river[step % 8])
        if step % 500 == 0:
            print(f"{step:6d} glow {glow.std().item():.4f}")
