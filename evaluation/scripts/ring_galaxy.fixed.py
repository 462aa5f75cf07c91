"""Self-gravitating ring of test masses, advanced with a leapfrog and streamed frame by frame."""
import os
import math
import torch

BODIES, SOFT, DT = 320, 0.05, 2e-3
FRAME = 20
STEPS = int(os.environ.get("STEPS", "60000"))


def initial_ring(gen):
    angle = torch.linspace(0, 2 * math.pi, BODIES + 1)[:-1]
    radius = 1.0 + 0.02 * torch.randn(BODIES, generator=gen)
    pos = torch.stack((radius * angle.cos(), radius * angle.sin(), 0.01 * torch.randn(BODIES, generator=gen)), -1)
    speed = radius.rsqrt()
    vel = torch.stack((-speed * angle.sin(), speed * angle.cos(), torch.zeros(BODIES)), -1)
    mass = torch.full((BODIES,), 0.15 / BODIES)
    return pos, vel, mass


@torch.compile
def leap(pos, vel, acc, mass):
    vel = vel + 0.5 * DT * acc
    pos = pos + DT * vel
    x, y, z = pos.unbind(-1)
    dx, dy, dz = x[None] - x[:, None], y[None] - y[:, None], z[None] - z[:, None]
    inv = torch.rsqrt(dx * dx + dy * dy + dz * dz + SOFT ** 2)
    pull = mass * inv * inv * inv
    ring = torch.stack(((pull * dx).sum(-1), (pull * dy).sum(-1), (pull * dz).sum(-1)), -1)
    r2 = pos.square().sum(-1, keepdim=True)
    acc = ring - pos * (r2 + SOFT ** 2) ** -1.5
    return pos, vel + 0.5 * DT * acc, acc


def integrate(pos, vel, mass, steps: int):
    acc = -pos * (pos.square().sum(-1, keepdim=True) + SOFT ** 2) ** -1.5
    for i in range(steps):
        pos, vel, acc = leap(pos, vel, acc, mass)
        if (i + 1) % FRAME == 0:
            yield pos, vel


def energy(pos, vel, mass):
    kinetic = 0.5 * (mass * vel.square().sum(-1)).sum()
    halo = -(mass / (pos.square().sum(-1) + SOFT ** 2).sqrt()).sum()
    return (kinetic + halo).item()


class Recorder:
    def __init__(self):
        self.width = []

    def add(self, pos):
        radius = pos[:, :2].norm(dim=-1)
        self.width.append(radius.std().item())

    def summary(self):
        return f"ring width {self.width[0]:.4f} -> {self.width[-1]:.4f}"


def main():
    gen = torch.Generator().manual_seed(9)
    pos, vel, mass = initial_ring(gen)
    start = energy(pos, vel, mass)
    recorder = Recorder()
    for frame, (pos, vel) in enumerate(integrate(pos, vel, mass, STEPS)):
        recorder.add(pos)
        if frame % 150 == 0:
            drift = energy(pos, vel, mass) / start - 1
            print(f"frame {frame:4d}  energy drift {drift:+.2e}  {recorder.summary()}")
    print("finished:", recorder.summary())


if __name__ == "__main__":
    with torch.no_grad():
        main()
