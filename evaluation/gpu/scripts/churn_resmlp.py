"""Customer churn from tabular features: residual MLP with learned feature gates."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda"
STEPS = int(os.environ.get("STEPS", "2500"))
FEATURES = 96
WIDTH = 128
DEPTH = 20
BATCH = 1024

torch.autograd.set_detect_anomaly(True)


class GatedBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, width)
        self.gate = nn.Linear(width, width)
        self.scale = nn.Parameter(torch.full((width,), 0.3))

    def forward(self, x):
        h = self.norm(x)
        h = F.silu(self.up(h)) * torch.sigmoid(self.gate(h))
        return x + self.scale * h


class ChurnNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(FEATURES, WIDTH)
        self.blocks = nn.ModuleList(GatedBlock(WIDTH) for _ in range(DEPTH))
        self.out = nn.Linear(WIDTH, 1)

    def forward(self, x):
        x = self.inp(torch.sign(x) * torch.log1p(x.abs()))
        for block in self.blocks:
            x = block(x)
        return self.out(x).squeeze(-1)


def table(rows):
    x = torch.randn(rows, FEATURES, device=device) * 3
    w = torch.randn(FEATURES, device=device) / FEATURES**0.5
    return x, (x @ w + 0.5 * torch.randn(rows, device=device) > 0).float()


def main():
    torch.manual_seed(4)
    net = ChurnNet().to(device)
    net.compile()
    opt = torch.optim.Adam(net.parameters(), lr=3e-4, fused=True)
    x, y = table(32 * BATCH)

    def fit(i):
        lo = (i % 32) * BATCH
        loss = F.binary_cross_entropy_with_logits(net(x[lo : lo + BATCH]), y[lo : lo + BATCH])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        return loss.detach()

    for i in range(3):
        fit(i)
    torch.cuda.synchronize()
    t0 = time.perf_counter()
    last = 0
    for step in range(1, STEPS + 1):
        loss = fit(step)
        if step % 250 == 0 or step == STEPS:
            torch.cuda.synchronize()
            t1 = time.perf_counter()
            ms = 1000 * (t1 - t0) / (step - last)
            print(f"step {step:5d}  loss {loss.item():.4f}  {ms:.3f} ms/step", flush=True)
            t0, last = t1, step


if __name__ == "__main__":
    main()
