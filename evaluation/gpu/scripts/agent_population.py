"""Population-based RL: keep slow target copies of every member's small policy network."""
import os
import time

import torch
import torch.nn as nn

device = "cuda"
STEPS = int(os.environ.get("STEPS", "20000"))
MEMBERS = 40
OBS = 24
ACT = 6
TAU = 0.005


def policy():
    return nn.Sequential(
        nn.Linear(OBS, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, ACT)
    )


class Population:
    def __init__(self):
        self.online = [policy().to(device) for _ in range(MEMBERS)]
        self.target = [policy().to(device) for _ in range(MEMBERS)]
        self.fast = [p.data for net in self.online for p in net.parameters()]
        self.slow = [p.data for net in self.target for p in net.parameters()]
        for s, f in zip(self.slow, self.fast):
            s.copy_(f)


@torch.compile
def track(slow, fast, tau):
    torch._foreach_lerp_(slow, fast, tau)


def perturb(fast, noise, scale):
    torch._foreach_add_(fast, noise, alpha=scale)


@torch.no_grad()
def main():
    torch.manual_seed(9)
    pop = Population()
    noises = [[torch.randn_like(f) for f in pop.fast] for _ in range(4)]
    for _ in range(3):
        track(pop.slow, pop.fast, TAU)
    torch.cuda.synchronize()
    t0 = time.perf_counter()
    last = 0
    for step in range(1, STEPS + 1):
        sign = 1.0 if (step // 4) % 2 else -1.0
        perturb(pop.fast, noises[step % 4], 0.01 * sign)
        track(pop.slow, pop.fast, TAU)
        if step % 2000 == 0 or step == STEPS:
            torch.cuda.synchronize()
            t1 = time.perf_counter()
            ms = 1000 * (t1 - t0) / (step - last)
            gap = sum((a - b).abs().mean() for a, b in zip(pop.slow, pop.fast)) / len(pop.slow)
            print(f"update {step:6d}  mean lag {gap.item():.5f}  {ms:.3f} ms/step", flush=True)
            t0, last = time.perf_counter(), step


if __name__ == "__main__":
    main()
