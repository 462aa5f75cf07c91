"""Regression of enzyme activity from per-residue descriptors with a stack of gated feed-forward blocks."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_float32_matmul_precision("high")
torch.manual_seed(2)

STEPS = int(os.environ.get("STEPS", "3000"))
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
PROTEINS = 64
RESIDUES = 256
DIM = 768
DEPTH = 4


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.scale = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        h = x.float()
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + self.eps)
        return (h * self.scale).to(x.dtype)


class GatedBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        hidden = 2 * dim
        self.norm = RMSNorm(dim)
        self.up = nn.Linear(dim, 2 * hidden, bias=False)
        self.down = nn.Linear(hidden, dim, bias=False)
        self.gain = nn.Parameter(torch.full((dim,), 0.5))

    def forward(self, x):
        gate, value = self.up(self.norm(x)).chunk(2, dim=-1)
        return x + self.gain * self.down(F.silu(gate) * value)


class ActivityNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(128, DIM)
        self.blocks = nn.ModuleList(GatedBlock(DIM) for _ in range(DEPTH))
        self.norm = RMSNorm(DIM)
        self.head = nn.Linear(DIM, 1)

    def forward(self, residues):
        x = self.embed(residues)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(dim=1)).squeeze(-1)


def main():
    net = ActivityNet().to(DEVICE)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=DEVICE == "cuda")
    inputs = [torch.randn(PROTEINS, RESIDUES, 128, device=DEVICE) for _ in range(4)]
    targets = [torch.randn(PROTEINS, device=DEVICE) for _ in range(4)]
    compiled = torch.compile(net)

    def step(i):
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            prediction = compiled(inputs[i % 4])
        loss = F.mse_loss(prediction.float(), targets[i % 4])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        return loss

    for i in range(10):
        step(i)

    mark = STEPS // 2
    for i in range(STEPS):
        if i == mark:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        loss = step(i)
        if i % 500 == 0:
            print(f"step {i}: mse {loss.item():.4f}")
    torch.cuda.synchronize()
    t1 = time.perf_counter()
    print(f"ms per step: {(t1 - t0) * 1000 / (STEPS - mark):.3f}")


if __name__ == "__main__":
    main()
