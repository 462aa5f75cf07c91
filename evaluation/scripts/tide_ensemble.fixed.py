"""Perturbed-parameter ensemble of a learned tidal-flat surrogate."""
import os
import copy
import time

import torch
import torch.nn as nn

torch.manual_seed(8)

CELLS = 1500
STATE = 24
MEMBERS = 5
STEPS = int(os.environ.get("STEPS", "5000"))
LOG = 200


class FlatModel(nn.Module):
    """One time step of depth / salinity / sediment features for every cell."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(STATE, STATE)
        self.rough = nn.Parameter(0.02 + 0.01 * torch.rand(STATE))
        self.slope = nn.Parameter(torch.rand(STATE) - 0.5)
        self.settle = nn.Parameter(torch.rand(STATE) * 0.1)

    def forward(self, s, level):
        depth = torch.nn.functional.softplus(level - s)
        flux = torch.asinh(self.slope * depth) / (1.0 + self.rough * depth * depth)
        stir = torch.exp(-depth) * torch.sin(s) + torch.trunc(s * 4.0) * 0.05
        sink = self.settle * s / (1.0 + s * s)
        return s + 0.05 * (torch.tanh(self.mix(s)) + flux + stir - sink - 0.4 * s)


def perturbed(model, spread):
    member = copy.deepcopy(model)
    with torch.no_grad():
        for p in member.parameters():
            p.mul_(1.0 + spread * torch.randn_like(p))
    member.compile()
    return member


def main():
    control = FlatModel().eval().requires_grad_(False)

    members = [perturbed(control, 0.05) for _ in range(MEMBERS)]
    states = [torch.rand(CELLS, STATE) for _ in members]
    t0 = time.perf_counter()
    with torch.no_grad():
        for step in range(1, STEPS + 1):
            level = torch.sin(torch.tensor(step * 0.05)) * 1.5
            states = [m(s, level) for m, s in zip(members, states)]
            if step % LOG == 0:
                stack = torch.stack(states)
                dt = (time.perf_counter() - t0) / LOG * 1e3
                print(f"t {step} mean {stack.mean():.4f} spread {stack.std(0).mean():.4f} {dt:.3f} ms/step")
                t0 = time.perf_counter()


if __name__ == "__main__":
    main()
