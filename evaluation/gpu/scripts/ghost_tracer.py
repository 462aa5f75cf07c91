import os
import time

import torch

DEV = torch.device("cuda" if torch.cuda.is_available() else "cpu")
STEPS = int(os.environ.get("STEPS", "300"))
SMALL = os.environ.get("SMALL") == "1"

N = 24 if SMALL else 640          # interior cells per side
HALO = 2                          # ghost cells on each face
PARTICLES = 500 if SMALL else 400_000
DT = 0.35


def wrap(pos):
    return pos - torch.floor(pos / N) * N


def drift(pos, vel, kick):
    """Leapfrog with a weak rotation about the z axis."""
    x = pos - 0.5 * N
    swirl = torch.stack((-x[:, 1], x[:, 0], torch.zeros_like(x[:, 2])), dim=1) * (0.8 / N)
    vel = 0.995 * vel + DT * (swirl + kick)
    return wrap(pos + DT * vel), vel


def cells_of(pos):
    c = pos.to(torch.int64).clamp_(0, N - 1)
    return c[:, 0], c[:, 1], c[:, 2]


@torch.compile
def advance(field, pos, vel, kick, age):
    pos, vel = drift(pos, vel, kick)
    i, j, k = cells_of(pos)
    speed = vel.square().sum(dim=1).sqrt()
    tag = torch.exp(-0.01 * age) * (1.0 + speed)
    interior = field[HALO:-HALO, HALO:-HALO, HALO:-HALO]
    interior[i, j, k] = tag
    return pos, vel, age + DT


@torch.compile
def probe(field, sites):
    a = field[sites[:, 0], sites[:, 1], sites[:, 2]]
    return a.mean(), a.amax()


def sync():
    if DEV.type == "cuda":
        torch.cuda.synchronize()


def main():
    torch.manual_seed(7)
    side = N + 2 * HALO
    field = torch.zeros(side, side, side, device=DEV)
    pos = torch.rand(PARTICLES, 3, device=DEV) * N
    vel = torch.randn(PARTICLES, 3, device=DEV) * 0.3
    age = torch.rand(PARTICLES, device=DEV) * 40
    kicks = torch.randn(8, PARTICLES, 3, device=DEV) * 0.05
    sites = torch.randint(HALO, N + HALO, (4096, 3), device=DEV)

    mean = peak = None
    t0 = time.perf_counter()
    with torch.no_grad():
        for step in range(STEPS):
            if step == STEPS // 2:
                sync()
                t0 = time.perf_counter()
            pos, vel, age = advance(field, pos, vel, kicks[step % 8], age)
            if step % 10 == 0:
                mean, peak = probe(field, sites)
    sync()
    ms = (time.perf_counter() - t0) * 1e3 / (STEPS - STEPS // 2)
    print(f"tracer mean={mean.item():.5f} peak={peak.item():.4f} touched={(field != 0).sum().item()}")
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()
