"""Marks a ladder of bonds against the limits and haircuts of their issuers."""
import argparse
import random
from dataclasses import dataclass, field

import torch
import torch.nn as nn


@dataclass
class Register:
    """What the risk desk keeps per issuer."""
    limits: dict = field(default_factory=dict)
    haircuts: dict = field(default_factory=dict)

    @classmethod
    def load(cls, issuers, seed=9):
        rng = random.Random(seed)
        names = [f"XS{rng.randrange(10 ** 9):09d}" for _ in range(issuers)]
        return cls({name: round(rng.uniform(1.0, 4.0), 4) for name in names},
                   {name: round(rng.uniform(0.01, 0.3), 4) for name in names})

    def widest(self):
        return max(self.limits.values())

    def dearest(self):
        return max(self.haircuts.values())


class LadderMark(nn.Module):
    def __init__(self, register, bonds):
        super().__init__()
        self.register = register
        self.coupon = nn.Parameter(torch.rand(bonds) * 0.06, requires_grad=False)
        self.tenor = nn.Parameter(torch.rand(bonds) * 20 + 0.5, requires_grad=False)

    def forward(self, rates):
        discount = torch.exp(-rates * self.tenor)
        price = self.coupon * (1 - discount) / rates.clamp(min=1e-3) + discount
        capped = price.clamp(max=self.register.widest())
        return capped * (1 - self.register.dearest())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--marks", type=int, default=120000)
    parser.add_argument("--bonds", type=int, default=400)
    parser.add_argument("--issuers", type=int, default=3500)
    args = parser.parse_args()
    torch.manual_seed(2)
    ladder = torch.compile(LadderMark(Register.load(args.issuers), args.bonds))
    curves = 0.02 + 0.03 * torch.rand(64, args.bonds)
    total = torch.zeros(args.bonds)
    with torch.no_grad():
        for i in range(args.marks):
            total += ladder(curves[i % 64])
            if i % 5000 == 4999:
                print(f"{i + 1} marks, mean {total.mean().item() / (i + 1):.4f}")


if __name__ == "__main__":
    main()
