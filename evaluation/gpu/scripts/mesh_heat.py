"""Explicit heat conduction on an unstructured finite-volume mesh."""
import os
import random
import time

import numpy as np
import torch

device = "cuda"
STEPS = int(os.environ.get("STEPS", "4000"))
CELLS = 400_000
FACES = 3_000_000
FIELDS = 4
SUBSTEPS = 5


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True)


def build_mesh():
    owner = torch.randint(0, CELLS, (FACES,), device=device)
    shift = torch.randint(1, 2000, (FACES,), device=device)
    neigh = (owner + shift) % CELLS
    conduct = 0.02 * torch.rand(FACES, 1, device=device)
    return owner, neigh, conduct


@torch.compile
def conduct_step(temp, owner, neigh, conduct, source):
    for _ in range(SUBSTEPS):
        flux = conduct * (temp[neigh] - temp[owner])
        rate = torch.zeros_like(temp)
        rate = rate.index_add(0, owner, flux)
        rate = rate.index_add(0, neigh, -flux)
        temp = temp + 0.2 * (rate + source)
    return temp


@torch.no_grad()
def main():
    seed_everything(5)
    owner, neigh, conduct = build_mesh()
    temp = 300 + 20 * torch.randn(CELLS, FIELDS, device=device)
    source = torch.zeros_like(temp)
    source[: CELLS // 100] = 0.5
    source = source - source.mean(0)
    for _ in range(3):
        temp = conduct_step(temp, owner, neigh, conduct, source)
    torch.cuda.synchronize()
    t0 = time.perf_counter()
    last = 0
    for step in range(1, STEPS + 1):
        temp = conduct_step(temp, owner, neigh, conduct, source)
        if step % 500 == 0 or step == STEPS:
            torch.cuda.synchronize()
            t1 = time.perf_counter()
            ms = 1000 * (t1 - t0) / (step - last)
            print(f"t={step:6d}  mean {temp.mean().item():.3f}  spread {temp.std().item():.3f}  {ms:.3f} ms/step", flush=True)
            t0, last = t1, step


if __name__ == "__main__":
    main()
