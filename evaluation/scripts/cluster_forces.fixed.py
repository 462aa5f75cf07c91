"""Many small atomic clusters relaxed side by side with damped dynamics.

Each cluster is (3, atoms); forces come from differentiating the energy of a single cluster.
"""
import dataclasses
import time

import torch
from torch.func import grad_and_value, vmap


@dataclasses.dataclass(frozen=True)
class Box:
    clusters: int = 96
    atoms: int = 48
    dt: float = 0.01
    friction: float = 0.9
    warm: int = 5
    steps: int = 220


def pair_energy(pos):
    d = pos[:, :, None] - pos[:, None, :]
    r = torch.sqrt((d * d).sum(0) + 0.1)
    repulse = torch.exp(-1.4 * r)
    wave = torch.cos(3.0 * r) * torch.exp(-0.5 * r)
    tail = torch.tanh(r) / (1.0 + r * r)
    return repulse + 0.2 * wave - 0.5 * tail


def trap(pos):
    return 0.05 * (pos * pos).sum()


def energy(pos):
    return 0.5 * pair_energy(pos).sum() + trap(pos)


class Relaxer:
    def __init__(self, box):
        self.box = box
        g = torch.Generator().manual_seed(17)
        self.pos = torch.randn(box.clusters, 3, box.atoms, generator=g) * 1.5
        self.vel = torch.zeros_like(self.pos)
        self.forces = torch.compile(vmap(grad_and_value(energy)))

    def advance(self):
        b = self.box
        g, e = self.forces(self.pos)
        self.vel = b.friction * self.vel - b.dt * g
        self.pos = self.pos + b.dt * self.vel
        return e


def spread(pos):
    return pos.std(dim=2).mean().item()


def main():
    box = Box()
    relax = Relaxer(box)
    for _ in range(box.warm):
        relax.advance()

    laps, trace = [], []
    for k in range(box.steps):
        t0 = time.perf_counter()
        e = relax.advance()
        laps.append(time.perf_counter() - t0)
        if k % 55 == 0:
            trace.append((k, e.mean().item(), spread(relax.pos)))

    for k, e, s in trace:
        print(f"step {k:4d}  <E> {e:10.4f}  spread {s:.4f}")
    laps.sort()
    print(f"{box.clusters} clusters: {laps[len(laps) // 2] * 1e3:.2f} ms per step")


if __name__ == "__main__":
    main()
