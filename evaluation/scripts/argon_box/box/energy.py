import torch
import torch.nn as nn


class PairEnergy(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.centres = nn.Parameter(torch.linspace(0.8, 2.5, width))
        self.weights = nn.Parameter(0.05 * torch.randn(width))

    def forward(self, places, pairs, mask, side):
        gap = places[pairs[0]] - places[pairs[1]]
        gap = gap - side * torch.round(gap / side)
        far = (gap * gap).sum(-1) + 1e-6
        near = torch.exp(-4 * (far.sqrt().unsqueeze(1) - self.centres) ** 2)
        core = (0.8 / far) ** 3
        return (mask * (core * core - core + near @ self.weights)).sum()


class Mover(nn.Module):
    def __init__(self, energy, side, dt=1e-3):
        super().__init__()
        self.energy, self.side, self.dt = energy, side, dt

    def forward(self, places, speed, pairs, mask):
        total = self.energy(places, pairs, mask, self.side)
        (slope,) = torch.autograd.grad(total, places)
        speed = (speed - self.dt * slope.clamp(-50, 50)) * 0.999
        return torch.remainder(places.detach() + self.dt * speed, self.side), speed
