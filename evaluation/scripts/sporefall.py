"""Spores carried by gusts: random kicks added to a falling cloud."""
import os

import torch

STEPS = int(os.environ.get("STEPS", "8000"))
torch.manual_seed(21)


class Gusts(torch.nn.Module):
    def __init__(self, spores):
        super().__init__()
        self.drag = torch.nn.Parameter(0.9 + 0.05 * torch.rand(spores))
        self.lift = torch.nn.Parameter(torch.rand(spores) * 0.01)

    def forward(self, height, speed):
        gust = torch.randn_like(speed)
        swirl = torch.rand_like(speed) - 0.5
        speed = speed * self.drag + 0.05 * gust + 0.02 * swirl
        height = torch.relu(height + speed * 0.1 + self.lift - 0.02)
        return height, speed


gusts = Gusts(2048)
carry = torch.compile(gusts)
height = torch.full((128, 2048), 3.0)
speed = torch.zeros(128, 2048)


def settled(height):
    return (height == 0).float().mean().item()


landed = []
with torch.no_grad():
    for step in range(STEPS):
        height, speed = carry(height, speed)
        if step % 200 == 0:
            landed.append(settled(height))
            print(f"{step:6d} settled {landed[-1]:.4f} mean height {height.mean().item():.3f}")
        if step % 1000 == 999:
            height = torch.full_like(height, 3.0)
            speed = torch.zeros_like(speed)
