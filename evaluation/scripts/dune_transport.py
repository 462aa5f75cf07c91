"""How far did the sand travel? Entropic transport between dune surveys, a few sweeps per survey pair."""
import os
import time
import torch

torch.manual_seed(25)

CELLS, PROFILES, SWEEPS = 900, 24, 6


@torch.compile
def sweep(kernel, before, after, pull, push):
    for _ in range(SWEEPS):
        pull = before / (kernel @ push + 1e-9)
        push = after / (kernel.t() @ pull + 1e-9)
    return pull, push


def travelled(kernel_cost, pull, push):
    return (pull * (kernel_cost @ push)).sum(0)


def survey(generator):
    heap = torch.rand(CELLS, PROFILES, generator=generator) + 0.05
    return heap / heap.sum(0)


def main():
    where = torch.rand(CELLS, 2)
    cost = torch.cdist(where, where)
    kernel = torch.exp(-cost / 0.1)
    kernel_cost = kernel * cost
    g = torch.Generator().manual_seed(2)
    before = survey(g)
    total = 0.0
    start = time.time()
    for n in range(int(os.environ.get("STEPS", "2000"))):
        after = survey(g)
        pull, push = sweep(kernel, before, after, torch.ones_like(before), torch.ones_like(before))
        total += travelled(kernel_cost, pull, push).mean().item()
        before = after
        if n % 200 == 199:
            print(f"survey {n + 1}  mean path {total / (n + 1):.5f}  {time.time() - start:.1f}s")


if __name__ == "__main__":
    main()
