"""Lagrangian dispersion of a smoke plume: stochastic particles in a neutral surface layer."""
import math
import os
import time

import torch

PARTICLES = 100_000
DT = 0.5
USTAR = 0.4
KARMAN = 0.41
ROUGHNESS = 0.03
TOP = 800.0


def wind_profile(z):
    return USTAR / KARMAN * torch.log(z / ROUGHNESS + 1.0)


def sigma_w(z):
    return 1.3 * USTAR * torch.exp(-2.0 * z / TOP)


def time_scale(z):
    return 0.5 * z / (sigma_w(z) * (1.0 + 15.0 * z / TOP)) + 1.0


@torch.compile
def transport(pos, vel):
    x, y, z = pos[0], pos[1], pos[2]
    tau = time_scale(z)
    decay = torch.exp(-DT / tau)
    spread = sigma_w(z) * torch.sqrt(1.0 - decay * decay)
    kick = torch.randn_like(vel)
    v = vel[0] * decay + 1.4 * spread * kick[0]
    w = vel[1] * decay + spread * kick[1]
    x = x + wind_profile(z) * DT
    y = y + v * DT
    z = z + w * DT
    w = torch.where(z < ROUGHNESS, -w, w)
    z = torch.where(z < ROUGHNESS, 2 * ROUGHNESS - z, z)
    w = torch.where(z > TOP, -w, w)
    z = torch.where(z > TOP, 2 * TOP - z, z)
    return torch.stack([x, y, z.clamp(ROUGHNESS, TOP)]), torch.stack([v, w])


def ground_dose(pos, bins=64):
    near = pos[:, pos[2] < 10.0]
    column = (near[0] / 50.0).clamp(0, bins - 1).long()
    return torch.bincount(column, minlength=bins).float() / PARTICLES


def main():
    torch.set_num_threads(1)
    torch.manual_seed(3)
    steps = int(os.environ.get("STEPS", "240"))
    pos = torch.zeros(3, PARTICLES)
    pos[2] = 40.0
    vel = torch.zeros(2, PARTICLES)
    dose = torch.zeros(64)
    half = time.perf_counter()
    for step in range(steps):
        if step == steps // 2:
            half = time.perf_counter()
        pos, vel = transport(pos, vel)
        if step % 30 == 29:
            dose += ground_dose(pos)
    per_step = (time.perf_counter() - half) / max(1, steps - steps // 2)
    width = math.sqrt(pos[1].var().item())
    print(f"plume width {width:.2f} m, dose peak {dose.max().item():.4f}")
    print(f"{per_step * 1e3:.3f} ms per step")


if __name__ == "__main__":
    main()
