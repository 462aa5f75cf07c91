"""Propagate position/velocity covariances of many targets through a manoeuvre sequence."""
import os
import time

import torch

device = "cuda"
STEPS = int(os.environ.get("STEPS", "1600"))
TRACKS = 400_000
LEGS = 6


def transition_bank(n_kinds):
    """Constant-turn transition matrices for state (x, y, vx, vy)."""
    omega = torch.linspace(-0.2, 0.2, n_kinds, device=device) + 1e-3
    dt = 1.0
    s, c = torch.sin(omega * dt), torch.cos(omega * dt)
    bank = torch.zeros(n_kinds, 4, 4, device=device)
    bank[:, 0, 0] = 1
    bank[:, 1, 1] = 1
    bank[:, 0, 2] = s / omega
    bank[:, 0, 3] = (c - 1) / omega
    bank[:, 1, 2] = (1 - c) / omega
    bank[:, 1, 3] = s / omega
    bank[:, 2, 2] = c
    bank[:, 2, 3] = -s
    bank[:, 3, 2] = s
    bank[:, 3, 3] = c
    return bank


def mul4(a, b):
    return (a.unsqueeze(-1) * b.unsqueeze(-3)).sum(-2)


def propagate(cov, total, legs, noise):
    for trans in legs:
        total = mul4(trans, total)
        cov = mul4(mul4(trans, cov), trans.transpose(1, 2)) + noise
    return cov, total


@torch.no_grad()
def main():
    torch.manual_seed(2)
    bank = transition_bank(64)
    legs = [bank[torch.randint(0, 64, (TRACKS,), device=device)] for _ in range(LEGS)]
    noise = torch.diag(torch.tensor([0.05, 0.05, 0.01, 0.01], device=device))
    eye = torch.eye(4, device=device).expand(TRACKS, 4, 4).contiguous()
    prior = 0.5 * eye
    run = torch.compile(propagate)
    for _ in range(3):
        run(prior, eye, legs, noise)
    torch.cuda.synchronize()
    t0 = time.perf_counter()
    last = 0
    for step in range(1, STEPS + 1):
        cov, total = run(prior, eye, legs, noise)
        if step % 200 == 0 or step == STEPS:
            spread = cov.diagonal(dim1=1, dim2=2).mean(0).tolist()
            t1 = time.perf_counter()
            ms = 1000 * (t1 - t0) / (step - last)
            print(f"scan {step:5d}  mean variances {[round(v, 3) for v in spread]}  {ms:.3f} ms/step", flush=True)
            t0, last = t1, step


if __name__ == "__main__":
    main()
