"""Langevin dynamics of a small cluster with a smooth pair potential."""
import os
import math
import time

import torch

torch.manual_seed(9)

ATOMS = 260
STEPS = int(os.environ.get("STEPS", "12000"))
LOG = 500
DT = 2e-3


class PairEnergy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.depth = torch.nn.Parameter(torch.tensor(1.2))
        self.range = torch.nn.Parameter(torch.tensor(1.0))
        self.eye = torch.nn.Buffer(torch.eye(ATOMS))

    def forward(self, pos):
        d = pos[:, None, :] - pos[None, :, :]
        r = (d.square().sum(-1) + self.eye).sqrt()
        s = torch.exp(-(r - 1.1) / self.range)
        pair = self.depth * (s * s - 2.0 * s)
        ripple = 0.05 * torch.cos(3.0 * r) * torch.exp(-0.2 * r * r)
        taper = torch.sigmoid(6.0 * (3.0 - r))
        return 0.5 * ((pair + ripple) * taper * (1.0 - self.eye)).sum() + 0.01 * pos.square().sum()


energy = PairEnergy().requires_grad_(False)


@torch.compile
def force(pos):
    u = energy(pos)
    (g,) = torch.autograd.grad(u, pos)
    f = -g
    big = f.norm(dim=-1, keepdim=True)
    return f * (50.0 / big.clamp(min=50.0)), u.detach()


def main():
    n = math.ceil(ATOMS ** (1 / 3))
    axis = torch.arange(n, dtype=torch.float32) * 1.2
    pos = torch.cartesian_prod(axis, axis, axis)[:ATOMS]
    pos = pos - pos.mean(0) + 0.02 * torch.randn(ATOMS, 3)
    vel = torch.zeros_like(pos)
    f, u = force(pos.detach().requires_grad_())
    t0 = time.perf_counter()
    for step in range(1, STEPS + 1):
        vel = vel + 0.5 * DT * f
        pos = (pos + DT * vel).detach()
        f, u = force(pos.requires_grad_())
        pos = pos.detach()
        vel = 0.98 * (vel + 0.5 * DT * f) + 0.01 * torch.randn_like(vel)
        if step % LOG == 0:
            dt = (time.perf_counter() - t0) / LOG * 1e3
            print(f"step {step} U {u.item():.3f} K {0.5 * vel.square().sum().item():.3f} {dt:.3f} ms/step")
            t0 = time.perf_counter()


if __name__ == "__main__":
    main()
