"""Simulated annealing of a large continuous-spin lattice (Langevin dynamics), temperature lowered step by step."""
import os
import time
import torch

torch.manual_seed(15)
dev = "cuda"
N, DT, SWEEPS = 8192, 0.02, 40000


class Annealer:
    def __init__(self):
        self.beta = 0.2
        self.theta = 6.28 * torch.rand(N, N, device=dev)

    @torch._dynamo.assume_constant_result
    def noise_level(self):
        return (2.0 * DT / self.beta) ** 0.5

    def sweep(self, th, xi):
        f = (torch.sin(torch.roll(th, 1, 0) - th) + torch.sin(torch.roll(th, -1, 0) - th)
             + torch.sin(torch.roll(th, 1, 1) - th) + torch.sin(torch.roll(th, -1, 1) - th))
        th = th + DT * f + self.noise_level() * xi
        return torch.remainder(th, 6.283185307179586)

    def order(self):
        e = -(torch.cos(torch.roll(self.theta, 1, 0) - self.theta) + torch.cos(torch.roll(self.theta, 1, 1) - self.theta))
        return e.mean().item()


def main():
    ann = Annealer()
    sweep = torch.compile(ann.sweep)
    t0 = time.time()
    for it in range(int(os.environ.get("STEPS", "40000"))):
        if it % 2000 == 0:
            ann.beta = 0.2 * 1.25 ** (it // 2000)
            print(f"sweep {it} beta {ann.beta:.3f} energy per bond pair {ann.order():.5f} {time.time() - t0:.1f}s", flush=True)
        xi = torch.randn(N, N, device=dev)
        ann.theta = sweep(ann.theta, xi)
    print(f"final energy {ann.order():.5f} {time.time() - t0:.1f}s")


if __name__ == "__main__":
    main()
