"""Reverse diffusion over small tapestry patches."""
import argparse
import math

import torch
from torch import nn

DEVICE = "cuda"


def noise_table(length, width):
    half = width // 2
    freqs = torch.exp(-math.log(10000.0) * torch.arange(half) / half)
    phase = torch.arange(length)[:, None] * freqs
    return torch.cat([phase.sin(), phase.cos()], dim=-1)


class Denoiser(nn.Module):
    def __init__(self, length, dims=192, width=256, depth=10):
        super().__init__()
        self.register_buffer("table", noise_table(length, 64))
        self.inp = nn.Linear(dims, width)
        self.time = nn.Linear(64, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.out = nn.Linear(width, dims)

    def forward(self, x, level):
        h = self.inp(x) + self.time(self.table[level])
        for layer in self.layers:
            h = h + nn.functional.silu(layer(nn.functional.layer_norm(h, h.shape[-1:])))
        return self.out(h)


class Chain:
    def __init__(self, length=1000):
        beta = torch.linspace(1e-4, 0.02, length, device=DEVICE)
        self.alpha = 1 - beta
        self.total = self.alpha.cumprod(0)
        self.length = length

    def back(self, x, eps, index):
        a, total = self.alpha[index], self.total[index]
        return (x - (1 - a) / (1 - total).sqrt() * eps) / a.sqrt()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=6000)
    args = ap.parse_args()
    torch.manual_seed(6)
    torch.set_float32_matmul_precision("high")
    chain = Chain()
    net = torch.compile(Denoiser(chain.length).to(DEVICE).eval(), mode="reduce-overhead")
    patch = torch.randn(32, 192, device=DEVICE)
    with torch.no_grad():
        for step in range(args.steps):
            index = chain.length - 1 - step % chain.length
            noise = net(patch, index)
            patch = chain.back(patch, noise, index)
            if index == 0:
                patch = torch.randn(32, 192, device=DEVICE)
            if step % 2000 == 0:
                print(step, f"{patch.std().item():.4f}")


if __name__ == "__main__":
    main()
