"""Per-sample input sensitivities of a small analytic risk model."""
import os
import time
import torch
from torch.func import grad, vmap

torch.manual_seed(10)

PATHS, DIM = 1500, 600
STEPS = 150
STEPS = int(os.environ.get("STEPS", STEPS))


def payoff(spot, vol):
    d = torch.log1p(spot.square()) / (0.2 + vol)
    up = torch.sigmoid(1.7 * d) * spot
    down = torch.sigmoid(1.7 * (d - vol)) * torch.exp(-0.03 * vol)
    return torch.tanh(up - down).mean() + 0.01 * (spot * spot.cos()).sum()


delta = torch.compile(vmap(grad(payoff), in_dims=(0, None)))


def market(k):
    g = torch.Generator().manual_seed(k)
    return torch.rand(PATHS, DIM, generator=g) + 0.5


def main():
    vol = torch.rand(DIM) * 0.3 + 0.1
    books = [market(k) for k in range(6)]
    total = torch.zeros(DIM)
    spent = []
    for k in range(STEPS):
        t0 = time.perf_counter()
        d = delta(books[k % 6], vol)
        spent.append(time.perf_counter() - t0)
        total += d.mean(0)
        if k % 30 == 0:
            print(f"scenario {k}: |delta| {d.abs().mean():.5f}")
    spent = sorted(spent[STEPS // 2:])
    print("largest exposure in factor", int(total.abs().argmax()))
    print(f"median scenario {spent[len(spent) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
