"""Artefact removal for small CT slices with row/column mixing layers whose weight has Kronecker form."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_float32_matmul_precision("high")
torch.manual_seed(8)

STEPS = int(os.environ.get("STEPS", "3000"))
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SIDE = 96
BATCH = 4096


class RowColumnLinear(nn.Module):
    """A dense layer on flattened slices, weight = rows (x) cols."""

    def __init__(self, side):
        super().__init__()
        self.side = side
        self.rows = nn.Parameter(torch.randn(side, side) / side**0.5)
        self.cols = nn.Parameter(torch.randn(side, side) / side**0.5)
        self.bias = nn.Parameter(torch.zeros(side * side))

    def forward(self, x):
        return F.linear(x, torch.kron(self.rows, self.cols), self.bias)


class Cleaner(nn.Module):
    def __init__(self, side=SIDE):
        super().__init__()
        self.analysis = RowColumnLinear(side)
        self.synthesis = RowColumnLinear(side)
        self.threshold = nn.Parameter(torch.full((side * side,), 0.1))

    def forward(self, x):
        coeff = self.analysis(x)
        coeff = torch.sign(coeff) * F.relu(coeff.abs() - self.threshold)
        return x + 0.1 * self.synthesis(coeff)


def main():
    model = Cleaner().to(DEVICE)
    compiled = torch.compile(model)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3, fused=DEVICE == "cuda")

    data = []
    for _ in range(3):
        clean = torch.rand(BATCH, SIDE * SIDE, device=DEVICE)
        data.append((clean + 0.1 * torch.randn_like(clean), clean))

    def step(i):
        noisy, clean = data[i % 3]
        loss = F.mse_loss(compiled(noisy), clean)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        return loss

    for i in range(8):
        step(i)

    timed = max(1, STEPS // 2)
    for i in range(STEPS):
        if i == STEPS - timed:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        loss = step(i)
        if i % 500 == 0:
            print(f"step {i}: mse {loss.item():.6f}")
    torch.cuda.synchronize()
    print(f"ms per step: {(time.perf_counter() - t0) * 1000 / timed:.3f}")


if __name__ == "__main__":
    main()
