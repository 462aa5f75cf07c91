"""Cooling of a kiln: a skin temperature model on many pots."""
import os

import torch

STEPS = int(os.environ.get("STEPS", "12000"))
torch.manual_seed(4)


class Skin(torch.nn.Module):
    def __init__(self, spots):
        super().__init__()
        self.emit = torch.nn.Parameter(0.5 + 0.4 * torch.rand(spots))
        self.flow = torch.nn.Parameter(torch.rand(spots) * 0.05)

    def forward(self, heat, room):
        loss = self.emit * (heat.square() - room.square()) * 0.01
        wind = self.flow * (heat - room)
        glow = torch.sigmoid(heat * 3.0 - 2.0) * torch.exp(-heat)
        heat = heat - loss - wind + 0.001 * glow
        return heat.clamp(0.1, 3.0), torch.sigmoid(glow) * torch.exp(-glow)


skin = torch.compile(Skin(1024))
heat = 1.0 + torch.rand(256, 1024)
room = 0.3 + torch.zeros(256, 1)

with torch.no_grad():
    for step in range(STEPS):
        heat, glow = skin(heat, room)
        if step % 300 == 0:
            print(f"{step:6d} mean {heat.mean().item():.4f} glow {glow.mean().item():.4f}")
        if step % 100 == 99:
            heat = heat.roll(1, 0) + 0.5
