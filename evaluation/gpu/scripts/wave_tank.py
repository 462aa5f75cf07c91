"""2-D acoustic wave tank with a sponge border, second order in time."""
import os
import math
import time

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
N = 6144
DT, DX, C0 = 0.4, 1.0, 1.0
SECONDS = float(os.environ.get("SECONDS", "25.0"))


def medium(n):
    y = torch.linspace(-1, 1, n, device=device)[:, None]
    x = torch.linspace(-1, 1, n, device=device)[None, :]
    speed = torch.where((x - 0.2) ** 2 + y**2 < 0.09, 0.6 * C0, C0)
    edge = torch.minimum(1 - x.abs(), 1 - y.abs())
    sponge = 1.0 - 0.05 * torch.exp(-((edge / 0.05) ** 2))
    return (speed * DT / DX) ** 2, sponge


@torch.compile
def advance(u, prev, k2, sponge):
    lap = (
        torch.roll(u, 1, 0) + torch.roll(u, -1, 0)
        + torch.roll(u, 1, 1) + torch.roll(u, -1, 1)
        - 4.0 * u
    )
    nxt = 2.0 * u - prev + k2 * lap
    return nxt * sponge, u * sponge


def source(step):
    a = math.pi * 0.03 * (step - 60)
    return (1 - 2 * a * a) * math.exp(-a * a)


@torch.no_grad()
def main():
    k2, sponge = medium(N)
    u = torch.zeros(N, N, device=device)
    prev = torch.zeros_like(u)
    probe = []
    for step in range(20):
        u, prev = advance(u, prev, k2, sponge)
        u[N // 2, N // 4] += source(step)
    print("ready", float(u.abs().max()))

    step, t0 = 20, time.perf_counter()
    while time.perf_counter() - t0 < SECONDS:
        for _ in range(200):
            u, prev = advance(u, prev, k2, sponge)
            if step < 200:
                u[N // 2, N // 4] += source(step)
            step += 1
        probe.append(u[N // 2, 3 * N // 4].item())
    took = time.perf_counter() - t0
    ms = 1e3 * took / (step - 20)
    print(f"{step} steps, {ms:.3f} ms/step, {N * N / ms / 1e6:.2f} Gcell/s, probe {probe[-1]:.3e}")


if __name__ == "__main__":
    main()
