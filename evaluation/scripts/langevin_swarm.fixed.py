#!/usr/bin/env python
# Overdamped Langevin dynamics of independent walkers in a tilted washboard potential.
import dataclasses
import time

import torch


@dataclasses.dataclass
class Setup:
    walkers: int = 250_000
    dt: float = 2e-3
    kT: float = 0.35
    tilt: float = 0.4
    amp: float = 1.2
    n_warm: int = 5
    n_steps: int = 165
    report: int = 55


def force(x, amp, tilt):
    return -amp * torch.sin(x) - 0.5 * amp * torch.sin(2.0 * x) + tilt


class Swarm:
    def __init__(self, cfg: Setup):
        self.cfg = cfg
        self.sigma = (2.0 * cfg.kT * cfg.dt) ** 0.5
        self.x = torch.zeros(cfg.walkers)
        self.aux = torch.zeros(cfg.walkers)
        self._advance = torch.compile(self._heun)

    def _heun(self, x, aux, n1, n2):
        c = self.cfg
        kick = self.sigma * n1
        f0 = force(x, c.amp, c.tilt)
        pred = x + c.dt * f0 + kick
        f1 = force(pred, c.amp, c.tilt)
        new = x + 0.5 * c.dt * (f0 + f1) + kick
        slow = n2
        aux = 0.99 * aux + 0.01 * (new - x) + 1e-4 * slow
        return new, aux

    def step(self):
        self.x, self.aux = self._advance(self.x, self.aux, torch.randn_like(self.x), torch.randn_like(self.x))


def drift(swarm, elapsed_time):
    return (swarm.x.mean() / elapsed_time).item()


def run():
    torch.manual_seed(0)
    cfg = Setup()
    swarm = Swarm(cfg)
    with torch.no_grad():
        for _ in range(cfg.n_warm):
            swarm.step()
        marks = [time.perf_counter()]
        for k in range(1, cfg.n_steps + 1):
            swarm.step()
            marks.append(time.perf_counter())
            if k % cfg.report == 0:
                sim_t = (k + cfg.n_warm) * cfg.dt
                print(f"t={sim_t:6.3f}  <v>={drift(swarm, sim_t):+.4f}  "
                      f"var={swarm.x.var().item():.4f}")
                marks[-1] = time.perf_counter()
    gaps = torch.tensor(marks, dtype=torch.float64).diff()
    print(f"{cfg.walkers} walkers, {gaps.median().item() * 1e3:.2f} ms per step")


if __name__ == "__main__":
    run()
