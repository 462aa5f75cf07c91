"""Laplace-kernel density of pedestrian traces, evaluated on moving probes."""
import os
import time

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"

AGENTS = 16384
PROBES = 8192
SECONDS = float(os.environ.get("SECONDS", "25.0"))


class Crowd:
    def __init__(self, seed):
        g = torch.Generator(device=device).manual_seed(seed)
        self.pos = torch.rand(AGENTS, 3, generator=g, device=device) * torch.tensor([80.0, 60.0, 4.0], device=device)
        self.vel = torch.randn(AGENTS, 3, generator=g, device=device) * 0.5
        self.group = torch.rand(AGENTS, generator=g, device=device) + 0.5

    def move(self, dt=0.1):
        self.pos += dt * self.vel
        self.vel *= 0.999


def density(probes, agents, mass, scale):
    d = (probes[:, None, :] - agents[None, :, :]).abs().sum(dim=-1)
    k = torch.exp(-d / scale) * mass
    near = (d < 2.0).float().sum(dim=1)
    return k.sum(dim=1), near


evaluate = torch.compile(density)


def steer(probes, rho):
    drift = torch.tanh(rho - rho.mean())[:, None]
    return probes + 0.02 * drift * torch.sign(probes.mean(0) - probes)


@torch.no_grad()
def main():
    torch.manual_seed(1)
    crowd = Crowd(1)
    probes = torch.rand(PROBES, 3, device=device) * torch.tensor([80.0, 60.0, 4.0], device=device)

    def tick(probes):
        crowd.move()
        rho, near = evaluate(probes, crowd.pos, crowd.group, 1.5)
        return steer(probes, rho), rho, near

    for _ in range(4):
        probes, rho, near = tick(probes)
    print(f"start: mean density {rho.mean().item():.3f}, crowded {int((near > 8).sum().item())}")

    ticks = 0
    t0 = time.perf_counter()
    while time.perf_counter() - t0 < SECONDS:
        for _ in range(25):
            probes, rho, near = tick(probes)
        ticks += 25
        peak = rho.max().item()
    took = time.perf_counter() - t0
    print(f"{ticks} ticks, {1e3 * took / ticks:.2f} ms per tick, peak {peak:.3f}")


if __name__ == "__main__":
    main()
