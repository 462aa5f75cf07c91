"""Calibrate head exchange between wells of an aquifer on an irregular graph."""
import os

import numpy as np

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
import torch
from torch import nn

DEVICE = torch.device("cuda")
STEPS = int(os.environ.get("STEPS", "4000"))
WELLS, PIPES, DIM, ROUNDS = 60_000, 500_000, 32, 3


def repeatable(seed):
    torch.manual_seed(seed)
    np.random.seed(seed)
    torch.set_float32_matmul_precision("high")


def survey():
    """A few wells collect many pipes, most have a handful."""
    popularity = 1.0 / (np.arange(WELLS) + 40.0) ** 0.8
    sink = np.random.choice(WELLS, PIPES, p=popularity / popularity.sum())
    source = np.random.randint(0, WELLS, PIPES)
    width = np.random.gamma(2.0, 0.5, PIPES).astype(np.float32)
    return [torch.from_numpy(a).to(DEVICE) for a in (source, sink, width)]


class Exchange(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(4, DIM)
        self.mix = nn.ModuleList(nn.Linear(DIM, DIM) for _ in range(ROUNDS))
        self.leak = nn.Parameter(torch.full((DIM,), 0.1))
        self.head = nn.Linear(DIM, 1)

    def forward(self, wells, source, sink, width):
        h = torch.tanh(self.lift(wells))
        share = torch.sigmoid(width).unsqueeze(-1)
        for mix in self.mix:
            flow = torch.tanh(h[source] - self.leak) * share
            inflow = torch.zeros_like(h).index_add(0, sink, flow)
            h = torch.nn.functional.silu(mix(inflow * 0.05)) + h
        return self.head(h).squeeze(-1)


def main():
    repeatable(77)
    source, sink, width = survey()
    wells = torch.randn(WELLS, 4, device=DEVICE)
    observed = torch.sin(wells[:, 0]) + 0.2 * wells[:, 1] * wells[:, 2]
    model = Exchange().to(DEVICE)
    optimiser = torch.optim.Adam(model.parameters(), lr=2e-3, fused=True)
    simulate = torch.compile(model)
    for step in range(STEPS):
        misfit = (simulate(wells, source, sink, width) - observed).square().mean()
        misfit.backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        if step % 100 == 99:
            print(f"step {step + 1} misfit {misfit.item():.5f}")
    print("leak", round(model.leak.mean().item(), 5))


main()
