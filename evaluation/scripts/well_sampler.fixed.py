"""Underdamped Langevin sampling of a double-well ligand model (BAOAB splitting).

Many independent walkers are moved in a small number of collective variables; we
accumulate a free-energy profile along the first of them.
"""
import os
import time

import torch

WALKERS = 65536
CVS = 4
BINS = 60


class WellModel:
    def __init__(self, dim, barrier=4.0, stiffness=2.5, coupling=0.35):
        self.barrier = barrier
        self.stiffness = torch.linspace(stiffness, 2 * stiffness, dim - 1)
        self.coupling = coupling

    def force(self, q):
        s, rest = q[:, :1], q[:, 1:]
        shifted = rest - self.coupling * s * s
        f_rest = -self.stiffness * shifted
        f_s = -4.0 * self.barrier * s * (s * s - 1.0)
        f_s = f_s - 2.0 * self.coupling * s * f_rest.sum(1, keepdim=True)
        return torch.cat([f_s, f_rest], dim=1)


class Integrator:
    def __init__(self, model, dt=0.008, gamma=1.2, kT=1.0):
        self.model = model
        self.dt = dt
        self.c1 = float(torch.exp(torch.tensor(-gamma * dt)))
        self.c2 = float((kT * (1.0 - self.c1 ** 2)) ** 0.5)

    def advance(self, q, p, xi):
        half = 0.5 * self.dt
        p = p + half * self.model.force(q)
        q = q + half * p
        p = self.c1 * p + self.c2 * xi
        q = q + half * p
        p = p + half * self.model.force(q)
        return q, p


def profile(counts, kT=1.0):
    prob = counts / counts.sum().clamp(min=1)
    fe = -kT * torch.log(prob.clamp(min=1e-9))
    return fe - fe.min()


def main():
    torch.manual_seed(11)
    torch.set_num_threads(1)
    steps = int(os.environ.get("STEPS", "240"))

    model = WellModel(CVS)
    integ = Integrator(model)
    advance = torch.compile(integ.advance, fullgraph=True)

    q = torch.randn(WALKERS, CVS) * 0.1
    q[:, 0] += torch.where(torch.rand(WALKERS) < 0.5, -1.0, 1.0)
    p = torch.randn(WALKERS, CVS)
    counts = torch.zeros(BINS)

    times = []
    with torch.no_grad():
        for step in range(steps):
            t0 = time.perf_counter()
            q, p = advance(q, p, torch.randn_like(p))
            times.append(time.perf_counter() - t0)
            if step % 20 == 19:
                counts += torch.histc(q[:, 0], bins=BINS, min=-2.0, max=2.0)

    fe = profile(counts)
    times = sorted(times[len(times) // 2:])
    print(f"kinetic T {p.pow(2).mean():.3f}  barrier {fe[BINS // 2]:.3f}")
    print(f"median step {times[len(times) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
