"""Tethered buoy swarm: integrate coupled heave and surge under irregular waves with RK4."""
import os
import time

import torch

BUOYS = 24
SUBSTEPS = 16
DT = 0.004
COMPONENTS = 6


class Swarm:
    def __init__(self, generator):
        self.mass = 40.0 + 5.0 * torch.rand(BUOYS, generator=generator)
        self.stiffness = 900.0 + 80.0 * torch.rand(BUOYS, generator=generator)
        self.drag = 25.0 + 3.0 * torch.rand(BUOYS, generator=generator)
        self.position = torch.arange(BUOYS) * 3.0


@torch.compile
def acceleration(offset, velocity, forcing, mass, stiffness, drag):
    pull = -stiffness * offset
    return (pull - drag * velocity * velocity.abs() + forcing) / mass


def rk4(offset, velocity, forcing, mass, stiffness, drag):
    a1 = acceleration(offset, velocity, forcing, mass, stiffness, drag)
    v2 = velocity + 0.5 * DT * a1
    a2 = acceleration(offset + 0.5 * DT * velocity, v2, forcing, mass, stiffness, drag)
    v3 = velocity + 0.5 * DT * a2
    a3 = acceleration(offset + 0.5 * DT * v2, v3, forcing, mass, stiffness, drag)
    v4 = velocity + DT * a3
    a4 = acceleration(offset + DT * v3, v4, forcing, mass, stiffness, drag)
    offset = offset + DT / 6.0 * (velocity + 2.0 * v2 + 2.0 * v3 + v4)
    velocity = velocity + DT / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4)
    return offset, velocity


def wave_force(t, swarm, amplitude, omega, phase):
    arg = omega.view(-1, 1) * (t - swarm.position * 0.1) + phase.view(-1, 1)
    return (amplitude.view(-1, 1) * torch.cos(arg)).sum(dim=0)


def main():
    torch.set_num_threads(1)
    steps = int(os.environ.get("STEPS", "240"))
    generator = torch.Generator().manual_seed(31)
    swarm = Swarm(generator)
    amplitude = 60.0 * torch.rand(COMPONENTS, generator=generator)
    omega = 0.5 + 1.5 * torch.rand(COMPONENTS, generator=generator)
    phase = 6.28 * torch.rand(COMPONENTS, generator=generator)
    offset = torch.zeros(BUOYS)
    velocity = torch.zeros(BUOYS)
    envelope = torch.zeros(BUOYS)
    half = time.perf_counter()
    with torch.no_grad():
        for step in range(steps):
            if step == steps // 2:
                half = time.perf_counter()
            forcing = wave_force(step * SUBSTEPS * DT, swarm, amplitude, omega, phase)
            for _ in range(SUBSTEPS):
                offset, velocity = rk4(offset, velocity, forcing, swarm.mass, swarm.stiffness, swarm.drag)
            envelope = torch.maximum(envelope, offset.abs())
    per_step = (time.perf_counter() - half) / max(1, steps - steps // 2)
    print(f"largest excursion {envelope.max().item():.4f} m, rms speed {velocity.square().mean().sqrt().item():.4f}")
    print(f"{per_step * 1e3:.3f} ms per step")


if __name__ == "__main__":
    main()
