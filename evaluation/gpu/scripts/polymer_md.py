"""Overdamped dynamics of many independent bead-spring polymers in a thermal bath."""
import argparse
import math
import time

import torch


def forces(x, stiffness, rest, bend, well):
    bond = x[:, 1:] - x[:, :-1]
    r = bond.square().sum(-1, keepdim=True).add(1e-9).sqrt()
    pull = stiffness * (r - rest) * bond / r
    f = torch.nn.functional.pad(pull, (0, 0, 0, 1)) - torch.nn.functional.pad(pull, (0, 0, 1, 0))
    curve = x[:, 2:] - 2 * x[:, 1:-1] + x[:, :-2]
    inner = torch.nn.functional.pad(curve, (0, 0, 1, 1))
    f = f - bend * (torch.nn.functional.pad(curve, (0, 0, 2, 0)) - 2 * inner
                    + torch.nn.functional.pad(curve, (0, 0, 0, 2)))
    return f - well * torch.tanh(x)


def advance(x, dt, temperature):
    kick = math.sqrt(2.0 * temperature * dt) * torch.randn_like(x)
    return x + dt * forces(x, 80.0, 0.5, 2.0, 0.3) + kick


class Gyration:
    def __init__(self, device):
        self.total = torch.zeros((), device=device)
        self.count = 0

    def add(self, x):
        centre = x.mean(1, keepdim=True)
        self.total += (x - centre).square().sum(-1).mean()
        self.count += 1

    def value(self):
        return math.sqrt(self.total.item() / self.count)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=80000)
    ap.add_argument("--chains", type=int, default=131072)
    ap.add_argument("--beads", type=int, default=128)
    args = ap.parse_args()
    device = "cuda"

    torch.manual_seed(0)
    x = 0.3 * torch.randn(args.chains, args.beads, 3, device=device).cumsum(1)
    move = torch.compile(advance)
    meter, began = Gyration(device), time.perf_counter()
    with torch.inference_mode():
        for i in range(args.steps):
            x = move(x, 1e-3, 1.0)
            if i % 50 == 0:
                meter.add(x)
            if i % 10000 == 9999:
                print(f"{i + 1}: Rg {meter.value():.3f} ({time.perf_counter() - began:.1f} s)")


if __name__ == "__main__":
    main()
