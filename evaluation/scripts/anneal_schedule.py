"""Mean-field annealing of a large assignment problem."""
import os
import math
import time
import torch

torch.manual_seed(9)

ITEMS, BINS = 3000, 128
STEPS = 240
STEPS = int(os.environ.get("STEPS", STEPS))


def cool(t):
    return 0.05 + 1.5 * math.exp(-3.0 * t)


def relax(logits, cost, load, t):
    temp = cool(t)
    p = torch.softmax(-(cost + load) / temp + 0.5 * torch.tanh(logits), dim=1)
    ent = -(p * torch.log(p + 1e-9)).sum(1)
    fresh = logits + 0.1 * (torch.sin(p) - logits * torch.sigmoid(logits))
    return fresh, p.sum(0), ent.mean()


def main():
    cost = torch.rand(ITEMS, BINS)
    logits = torch.zeros(ITEMS, BINS)
    load = torch.zeros(BINS)
    step = torch.compile(relax)
    laps = []
    for k in range(STEPS):
        t = k / STEPS
        tic = time.perf_counter()
        logits, occ, ent = step(logits, cost, load, t)
        laps.append(time.perf_counter() - tic)
        load = 0.9 * load + 0.1 * (occ / (ITEMS / BINS) - 1)
        if k % 40 == 0:
            print(f"{k:4d} entropy {ent.item():.3f} imbalance {load.abs().max():.3f}")
    laps = sorted(laps[STEPS // 2:])
    print("most loaded bin", int(occ.argmax()))
    print(f"median step {laps[len(laps) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
