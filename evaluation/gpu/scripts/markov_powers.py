"""Long-horizon state distributions of a large Markov chain by repeated squaring."""
import os
import time

import torch

ROUNDS = int(os.environ.get("ROUNDS", "9000"))
STATES = 8192
SQUARINGS = 2
DEV = "cuda"


@torch.compile
def advance(p, q):
    for _ in range(SQUARINGS):
        q = q @ p
    return q


@torch.no_grad()
def main():
    torch.manual_seed(17)
    p = torch.rand(STATES, STATES, device=DEV)
    p /= p.sum(1, keepdim=True)
    p = p.to(torch.bfloat16)
    q = torch.eye(STATES, device=DEV, dtype=torch.bfloat16)
    t0 = time.time()
    for r in range(ROUNDS):
        q = advance(p, q)
        if r % 1000 == 0:
            mass = q.float().sum(1)
            print(f"round {r} mass {mass.mean().item():.4f} {time.time() - t0:.1f}s")
            q = (q.float() / mass[:, None]).to(torch.bfloat16)


if __name__ == "__main__":
    main()
