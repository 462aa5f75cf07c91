"""Option prices under stochastic volatility: many paths, Euler steps, running barrier and average."""
import os
import time
import torch

torch.manual_seed(23)
dev = "cuda"
PATHS, STEPS, RUNS = 24_000_000, 250, 200
KAPPA, THETA, XI, RHO, R = 2.0, 0.04, 0.5, -0.7, 0.02
DT = 1.0 / STEPS


@torch.compiler.disable
def note(run, k, s, alive):
    print(f"run {run} step {k} mean {s.mean().item():.4f} alive {alive.float().mean().item():.4f}", flush=True)


@torch.compile
def advance(s, v, avg, alive, z1, z2):
    vp = v.clamp(min=0.0)
    root = torch.sqrt(vp * DT)
    w = RHO * z1 + (1 - RHO * RHO) ** 0.5 * z2
    s = s * torch.exp((R - 0.5 * vp) * DT + root * z1)
    v = v + KAPPA * (THETA - vp) * DT + XI * root * w + 0.25 * XI * XI * DT * (w * w - 1.0)
    alive = alive & (s < 160.0) & (s > 60.0)
    avg = avg + s * DT
    return s, v, avg, alive


def main():
    t0 = time.time()
    for run in range(int(os.environ.get("STEPS", "200"))):
        s = torch.full((PATHS,), 100.0, device=dev)
        v = torch.full((PATHS,), 0.04, device=dev)
        avg = torch.zeros(PATHS, device=dev)
        alive = torch.ones(PATHS, dtype=torch.bool, device=dev)
        for k in range(STEPS):
            z1, z2 = torch.randn(2, PATHS, device=dev).unbind(0)
            s, v, avg, alive = advance(s, v, avg, alive, z1, z2)
            if k == STEPS - 1 and run % 10 == 0:
                note(run, k, s, alive)
        price = (torch.relu(avg - 100.0) * alive).mean() * 2.718281828 ** (-R)
        if run % 10 == 0:
            print(f"asian barrier call {price.item():.4f} {time.time() - t0:.1f}s", flush=True)


if __name__ == "__main__":
    main()
