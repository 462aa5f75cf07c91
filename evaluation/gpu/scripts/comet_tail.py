"""Trains a small attention model on comet light curves."""
import argparse
import time

import torch
from torch import nn
import torch.nn.functional as F

DEVICE = torch.device("cuda")


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        scale = torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6)
        return (x.float() * scale).to(x.dtype) * self.weight


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = RMSNorm(width), RMSNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.proj = nn.Linear(width, width, bias=False)
        self.gate = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, w))
        g, u = self.gate(self.n2(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(g) * u)


class LightCurve(nn.Module):
    def __init__(self, width=256, depth=6):
        super().__init__()
        self.inp = nn.Linear(8, width)
        self.layers = nn.ModuleList(Layer(width, 8) for _ in range(depth))
        self.out = nn.Linear(width, 8)

    def forward(self, x):
        h = self.inp(x)
        for layer in self.layers:
            h = layer(h)
        return self.out(h)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=3000)
    args = ap.parse_args()
    torch.manual_seed(0)
    model = LightCurve().to(DEVICE, torch.bfloat16)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    step_model = torch.compile(model)
    curves = torch.randn(512, 257, 8, device=DEVICE, dtype=torch.bfloat16).cumsum(1) * 0.05
    started = time.perf_counter()
    for step in range(args.steps):
        lo = (step * 32) % 512
        chunk = curves[lo:lo + 32]
        loss = F.mse_loss(step_model(chunk[:, :-1]).float(), chunk[:, 1:].float())
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        if step % 500 == 0:
            print(f"step {step:5d} loss {loss.item():.5f} after {time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main()
