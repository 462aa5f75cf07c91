"""Lagrangian particle dispersion: puffs released from a stack are carried by a sheared wind
with an Ornstein-Uhlenbeck turbulent velocity and deposited on the ground."""
import os
import time

import torch

torch.set_num_threads(1)

DT = 2.0
T_LAG = 90.0
SIGMA = (0.9, 0.8, 0.45)
MIX_HEIGHT = 1200.0


def wind_profile(z):
    """Log-law wind with a weak turning with height."""
    speed = 0.35 / 0.4 * torch.log1p(z.clamp_min(0.0) / 0.1)
    angle = 0.2 * torch.tanh(z / 400.0)
    return speed * torch.cos(angle), speed * torch.sin(angle)


def advance(pos, vel, mass):
    decay = 1.0 - DT / T_LAG
    kick = (2.0 * DT / T_LAG) ** 0.5
    xi = torch.randn_like(vel)
    u, v, w = vel.unbind(0)
    x, y, z = pos.unbind(0)

    damp = torch.exp(-z / (2.0 * MIX_HEIGHT))
    u = decay * u + kick * SIGMA[0] * xi[0]
    v = decay * v + kick * SIGMA[1] * xi[1]
    w = decay * w + kick * SIGMA[2] * xi[2] * damp

    bu, bv = wind_profile(z)
    x = x + (bu + u) * DT
    y = y + (bv + v) * DT
    z = z + w * DT

    hit_ground = z < 0.0
    hit_lid = z > MIX_HEIGHT
    z = torch.where(hit_ground, -z, z)
    z = torch.where(hit_lid, 2.0 * MIX_HEIGHT - z, z)
    w = torch.where(hit_ground | hit_lid, -w, w)

    lost = torch.where(hit_ground, 0.02 * mass, torch.zeros_like(mass))
    mass = mass - lost
    return torch.stack([x, y, z]), torch.stack([u, v, w]), mass, lost.sum()


class Swarm:
    def __init__(self, count, seed):
        torch.manual_seed(seed)
        self.count = count
        self.pos = torch.zeros(3, count)
        self.pos[2] = 80.0 + 5.0 * torch.randn(count)
        self.vel = torch.randn(3, count) * torch.tensor(SIGMA).view(3, 1)
        self.mass = torch.full((count,), 1.0 / count)
        self.deposited = torch.zeros(())
        self.kernel = torch.compile(advance)

    def step(self):
        self.pos, self.vel, self.mass, lost = self.kernel(self.pos, self.vel, self.mass)
        self.deposited += lost

    def summary(self):
        x, y, z = self.pos
        return (f"x {x.mean():9.1f} m  spread y {y.std():7.1f} m  height {z.mean():6.1f} m  "
                f"deposited {self.deposited:.4f}")


def main():
    swarm = Swarm(count=100_000, seed=31)
    for _ in range(5):
        swarm.step()
    steps, t0 = int(os.environ.get("STEPS", "2400")), time.perf_counter()
    for n in range(steps):
        swarm.step()
        if (n + 1) % 600 == 0:
            print(f"t = {(n + 1) * DT / 60:6.1f} min  {swarm.summary()}")
    t1 = time.perf_counter()
    print(f"{(t1 - t0) / steps * 1e3:.3f} ms/step for {swarm.count} puffs")


if __name__ == "__main__":
    main()
