"""Allen-Cahn grain boundary motion on a periodic plate with a slow stirring flow."""
import os
import time

import torch

torch.set_num_threads(1)

SIZE = 1024
STEPS = int(os.environ.get("STEPS", "10000"))


def neighbours(u):
    return (
        torch.roll(u, 1, 0) + torch.roll(u, -1, 0) + torch.roll(u, 1, 1) + torch.roll(u, -1, 1)
    )


def corners(u):
    up, down = torch.roll(u, 1, 0), torch.roll(u, -1, 0)
    return torch.roll(up, 1, 1) + torch.roll(up, -1, 1) + torch.roll(down, 1, 1) + torch.roll(down, -1, 1)


def relax(u, noise, dt, width):
    lap = (4.0 * neighbours(u) + corners(u) - 20.0 * u) / 6.0
    well = u - u.clone().pow(3)
    v = torch.empty_like(u)
    v.copy_(u)
    v += dt * (width * lap + well)
    v.add_(noise, alpha=1e-3)
    return v.clamp_(-1.05, 1.05)


class Plate:
    def __init__(self, seed):
        g = torch.Generator().manual_seed(seed)
        self.u = torch.randn(SIZE, SIZE, generator=g) * 0.2
        self.bank = [torch.randn(SIZE, SIZE, generator=g) for _ in range(5)]
        self.k = 0
        self.relax = torch.compile(relax)

    def step(self):
        self.u = self.relax(self.u, self.bank[self.k % 5], 0.1, 0.8)
        self.k += 1

    def boundary(self):
        flips = (self.u > 0) ^ (torch.roll(self.u, 1, 0) > 0)
        return flips.float().mean().item()


def main():
    plate = Plate(2)
    history = []
    with torch.no_grad():
        for _ in range(3):
            plate.step()
        walls = []
        for i in range(STEPS):
            t0 = time.perf_counter()
            plate.step()
            walls.append(time.perf_counter() - t0)
            if i % 500 == 0:
                history.append(plate.boundary())
            if i % 2500 == 0:
                print(f"step {i} boundary density {history[-1]:.4f}")

    walls.sort()
    print(f"coarsening ratio {history[-1] / history[0]:.3f}")
    print(f"median step {walls[len(walls) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
