"""Langevin dynamics of a small molten salt with a learned pair-and-density potential."""
import math
import os

import torch
import torch.nn as nn

N_IONS = 64
BOX = 10.5
CUTOFF = 4.4
N_RADIAL = 24
WIDTH = 384


class RadialBasis(nn.Module):
    def __init__(self, n: int, cutoff: float):
        super().__init__()
        self.cutoff = cutoff
        self.register_buffer("centers", torch.linspace(0.4, cutoff, n))
        self.eta = 0.5 * (n / cutoff) ** 2

    def forward(self, r: torch.Tensor) -> torch.Tensor:
        window = 0.5 * (torch.cos(math.pi * r / self.cutoff) + 1.0) * (r < self.cutoff)
        return torch.exp(-self.eta * (r[..., None] - self.centers) ** 2) * window[..., None]


class IonPotential(nn.Module):
    """Energy per ion from species-resolved radial densities."""

    def __init__(self):
        super().__init__()
        self.basis = RadialBasis(N_RADIAL, CUTOFF)
        self.species = nn.Embedding(2, 16)
        self.net = nn.Sequential(
            nn.Linear(2 * N_RADIAL + 16, WIDTH), nn.SiLU(),
            nn.Linear(WIDTH, WIDTH), nn.SiLU(),
            nn.Linear(WIDTH, WIDTH), nn.SiLU(),
            nn.Linear(WIDTH, WIDTH), nn.SiLU(),
            nn.Linear(WIDTH, 1),
        )
        self.repulsion = nn.Parameter(torch.tensor(0.8))

    def forward(self, pos: torch.Tensor, kind: torch.Tensor) -> torch.Tensor:
        d = pos[:, None, :] - pos[None, :, :]
        d = d - BOX * torch.round(d / BOX)
        eye = torch.eye(pos.shape[0], dtype=torch.bool)
        r2 = (d * d).sum(-1).masked_fill(eye, CUTOFF ** 2)
        r = r2.sqrt()
        g = self.basis(r)
        like = (kind[:, None] == kind[None, :]).to(g.dtype)[..., None]
        density = torch.cat([(g * like).sum(1), (g * (1 - like)).sum(1)], dim=-1)
        site = self.net(torch.cat([density, self.species(kind)], dim=-1)).sum()
        core = (self.repulsion / r2.clamp_min(0.25) ** 3 * (r < CUTOFF)).sum() * 0.5
        return site + core


def lattice() -> torch.Tensor:
    side = math.ceil(N_IONS ** (1 / 3))
    axis = (torch.arange(side) + 0.5) * (BOX / side)
    grid = torch.cartesian_prod(axis, axis, axis)[:N_IONS]
    return grid + 0.05 * torch.randn(grid.shape)


def main():
    steps = int(os.environ.get("STEPS", "240"))
    torch.manual_seed(7)
    potential = IonPotential().requires_grad_(False)
    energy_fn = torch.compile(potential)

    pos = lattice()
    vel = 0.3 * torch.randn_like(pos)
    kind = torch.arange(N_IONS) % 2
    dt, friction, kT = 0.004, 0.5, 0.4
    keep = math.exp(-friction * dt)
    kick = math.sqrt(kT * (1 - keep ** 2))

    energies = []
    for _ in range(steps):
        pos.requires_grad_(True)
        energy = energy_fn(pos, kind)
        (slope,) = torch.autograd.grad(energy, pos)
        pos = pos.detach()
        vel = keep * (vel - dt * slope) + kick * torch.randn_like(pos)
        pos = torch.remainder(pos + dt * vel, BOX)
        energies.append(energy.detach())

    energies = torch.stack(energies)
    temperature = float((vel ** 2).mean())
    print(f"{steps} steps  E0 {float(energies[0]):.3f}  E {float(energies[-20:].mean()):.3f}  T {temperature:.3f}")


if __name__ == "__main__":
    main()
