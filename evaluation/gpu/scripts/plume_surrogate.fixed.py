"""Surrogate of a plume dispersion solver: field coefficients in, concentrations out."""
import os
import time

import torch
import torch.nn as nn

STEPS = int(os.environ.get("STEPS", "1300"))
BATCH = 2048
WIDTH = 4096
LAYERS = 4
DEV = "cuda"


class ResidualDense(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(WIDTH, WIDTH)
        self.alpha = nn.Parameter(torch.full((WIDTH,), 0.5))

    def forward(self, x):
        h = self.lin(x)
        h = torch.sin(self.alpha * h) + 0.1 * h
        return 0.7 * (x + h)


class Surrogate(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(*[ResidualDense() for _ in range(LAYERS)])

    def forward(self, x):
        return self.body(x)


def main():
    torch.manual_seed(13)
    torch.set_float32_matmul_precision("high")
    net = Surrogate().to(DEV)
    model = torch.compile(net)
    opt = torch.optim.SGD(net.parameters(), lr=1e-3)
    coeff = torch.randn(4, BATCH, WIDTH, device=DEV)
    truth = torch.tanh(coeff.roll(1, -1) + coeff)
    t0 = time.time()
    for step in range(STEPS):
        k = step % 4
        loss = (model(coeff[k]) - truth[k]).square().mean()
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        if step % 100 == 0:
            print(f"step {step} mse {loss.item():.5f} {time.time() - t0:.1f}s")


if __name__ == "__main__":
    main()
