"""Guided sampling for limited-angle tomography with a frozen-in-time denoiser.

The denoiser predicts the clean latent; at each step the sample is nudged along
the gradient of the data misfit.
"""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
dtype = torch.bfloat16 if device == "cuda" else torch.float32

WIDTH = 2048
HIDDEN = 6144
DEPTH = 8
SLICES = 4096
MEAS = 512
STEPS = 60
RUN_SECONDS = float(os.environ.get("RUN_SECONDS", "28"))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, HIDDEN)
        self.down = nn.Linear(HIDDEN, WIDTH)

    def forward(self, x, shift, scale):
        h = self.norm(x) * (1 + scale) + shift
        return x + self.down(F.gelu(self.up(h), approximate="tanh"))


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(WIDTH, WIDTH)
        self.cond = nn.Linear(64, 2 * WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.norm = nn.LayerNorm(WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x, emb):
        shift, scale = self.cond(emb).chunk(2, dim=-1)
        h = self.inp(x)
        for b in self.blocks:
            h = b(h, shift, scale)
        return self.out(self.norm(h))


def sigma_embedding(sigma):
    freqs = torch.exp(torch.linspace(0, 5, 32, device=device))
    ang = torch.log(sigma) * freqs
    return torch.cat([ang.sin(), ang.cos()])[None].to(dtype)


class Sampler:
    def __init__(self, net, operator, y):
        self.net = torch.compile(net)
        self.A = operator
        self.y = y
        self.sigmas = torch.logspace(1.0, -2.0, STEPS + 1, device=device)
        self.embs = [sigma_embedding(s) for s in self.sigmas]

    def step(self, x, i):
        s, s_next = self.sigmas[i], self.sigmas[i + 1]
        x = x.detach().requires_grad_(True)
        clean = self.net(x, self.embs[i])
        residual = clean @ self.A - self.y
        misfit = residual.float().square().mean()
        (g,) = torch.autograd.grad(misfit, x)
        with torch.no_grad():
            ratio = (s_next / s).to(x.dtype)
            x = clean + (x - clean) * ratio - 0.5 * g
        return x, misfit.detach()

    def run(self):
        x = torch.randn(SLICES, WIDTH, device=device, dtype=dtype) * 10
        for i in range(STEPS):
            x, misfit = self.step(x, i)
        return x, misfit


def main():
    torch.manual_seed(0)
    net = Denoiser().to(device, dtype).eval().requires_grad_(False)
    A = torch.randn(WIDTH, MEAS, device=device, dtype=dtype) / WIDTH**0.5
    truth = torch.randn(SLICES, WIDTH, device=device, dtype=dtype)
    sampler = Sampler(net, A, truth @ A)

    x = torch.randn(SLICES, WIDTH, device=device, dtype=dtype)
    for i in range(3):
        x, m = sampler.step(x, i)
    print("warm", m.item())

    t0 = time.perf_counter()
    n = 0
    while time.perf_counter() - t0 < RUN_SECONDS:
        x, m = sampler.run()
        n += STEPS
        print(f"volume done, misfit {m.item():.4f}, {1e3 * (time.perf_counter() - t0) / n:.2f} ms/step")


if __name__ == "__main__":
    main()
