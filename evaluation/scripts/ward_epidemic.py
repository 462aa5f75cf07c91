"""Epidemic among hospital wards: a day is many small explicit substeps."""
import os
import time

import torch

STEPS = int(os.environ.get("STEPS", "2000"))
SUBSTEPS = 120


def substep(s, e, i, r, beta, mix):
    force = beta * i + 0.1 * mix * torch.sqrt(i + 1e-6)
    inf = s * (1 - torch.exp(-force * 0.01))
    onset = e * 0.003
    rec = i * 0.001 * (1 + torch.tanh(r))
    return s - inf, e + inf - onset, i + onset - rec, r + rec


def day(s, e, i, r, beta, mix):
    for _ in range(SUBSTEPS):
        s, e, i, r = substep(s, e, i, r, beta, mix)
    return s, e, i, r


def main():
    torch.manual_seed(13)
    torch.set_num_threads(1)
    run_day = torch.compile(day)
    n = 1500
    beta, mix = torch.rand(n), torch.rand(n)
    state = (torch.ones(n) * 0.99, torch.zeros(n), torch.ones(n) * 0.01, torch.zeros(n))
    t0 = time.perf_counter()
    with torch.no_grad():
        for step in range(STEPS):
            state = run_day(*state, beta, mix)
            if (step + 1) % 25 == 0:
                t1 = time.perf_counter()
                print(f"day {step + 1} sick {state[2].mean():.4f} {(t1 - t0) / 25 * 1e3:.2f} ms/step", flush=True)
                t0 = t1


if __name__ == "__main__":
    main()
