"""Action diffusion policy: rolls the denoiser for a small batch of robot arms."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))

WIDTH = 128 if SMALL else 4096
DEPTH = 2 if SMALL else 12
ACTION = 56
ROBOTS = 16


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.gate = nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)
        self.film = nn.Linear(64, 2 * width)

    def forward(self, x, emb):
        scale, shift = self.film(emb).chunk(2, dim=-1)
        h = self.norm(x) * (1 + scale) + shift
        return x + self.down(F.silu(self.gate(h)))


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(ACTION, WIDTH)
        self.blocks = nn.ModuleList(Block(WIDTH) for _ in range(DEPTH))
        self.out = nn.Linear(WIDTH, ACTION)
        self.register_buffer("freqs", torch.exp(torch.linspace(0.0, 4.0, 32)))

    def forward(self, x, sigma):
        phase = sigma.log()[:, None] * self.freqs
        emb = torch.cat([phase.sin(), phase.cos()], dim=-1).to(x.dtype)
        h = self.inp(x)
        for block in self.blocks:
            h = block(h, emb)
        return self.out(h)


def sync():
    if device.type == "cuda":
        torch.cuda.synchronize()


@torch.no_grad()
def main():
    torch.manual_seed(0)
    with torch.device(device):
        model = Denoiser().eval().to(torch.bfloat16)
    denoise = torch.compile(model)
    sigmas = torch.logspace(1.5, -2, STEPS + 1, device=device)
    x = torch.randn(ROBOTS, ACTION, device=device) * sigmas[0]
    half = STEPS // 2
    t0 = None
    with torch.autocast(device.type, dtype=torch.bfloat16):
        for step in range(STEPS):
            if step == half:
                sync()
                t0 = time.perf_counter()
            sigma, nxt = sigmas[step], sigmas[step + 1]
            scaled = x / torch.sqrt(sigma * sigma + 0.25)
            eps = denoise(scaled, sigma.expand(ROBOTS)).float()
            x = x + eps * (nxt - sigma)
    sync()
    ms = (time.perf_counter() - t0) * 1e3 / (STEPS - half)
    print(f"action_std={x.std().item():.4f} finite={bool(torch.isfinite(x).all())}")
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()
