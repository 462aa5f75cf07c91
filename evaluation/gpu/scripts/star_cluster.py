"""Star cluster: softened gravity between all pairs, leapfrog, double precision; energies now and then."""
import os
import time
import torch

torch.manual_seed(9)
dev = "cuda"
N, EPS2, DT = 6144, 1e-3, 1e-4


def accelerations(pos, mass):
    d = pos[:, None, :] - pos[None, :, :]
    r2 = (d * d).sum(-1) + EPS2
    inv = torch.rsqrt(r2)
    w = mass[None, :] * inv * inv * inv
    return -(w[..., None] * d).sum(1)


@torch.compile
def leapfrog(pos, vel, acc, mass):
    vel = vel + 0.5 * DT * acc
    pos = pos + DT * vel
    acc = accelerations(pos, mass)
    vel = vel + 0.5 * DT * acc
    return pos, vel, acc


def energy(pos, vel, mass):
    kin = 0.5 * (mass * (vel * vel).sum(-1)).sum()
    r = (torch.cdist(pos, pos) ** 2 + EPS2).sqrt()
    pot = -0.5 * (mass[:, None] * mass[None, :] / r).sum()
    return (kin + pot).item()


def main():
    pos = torch.randn(N, 3, device=dev, dtype=torch.float64)
    vel = 0.3 * torch.randn(N, 3, device=dev, dtype=torch.float64)
    mass = torch.full((N,), 1.0 / N, device=dev, dtype=torch.float64)
    acc = accelerations(pos, mass)
    t0 = time.time()
    for it in range(int(os.environ.get("STEPS", "30000"))):
        pos, vel, acc = leapfrog(pos, vel, acc, mass)
        if it % 1000 == 0:
            print(f"{it} energy {energy(pos, vel, mass):.8f} {time.time() - t0:.1f}s", flush=True)
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
