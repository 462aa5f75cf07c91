"""Streaming latent model for a network of tide gauges.

Every tick we get one frame of readings per station cluster, advance the
latent state and write a short forecast.
"""
import os
import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

STEPS = int(os.environ.get("STEPS", "3000"))
CLUSTERS = 64
READINGS = 48
LATENT = 256
BLOCKS = 8
HORIZON = 12

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(3)
torch.set_float32_matmul_precision("high")


class GatedBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, 2 * dim)
        self.down = nn.Linear(dim, dim)

    def forward(self, x):
        a, b = self.up(self.norm(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(a) * b)


class TideModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.read_in = nn.Linear(READINGS, LATENT)
        self.phase_in = nn.Linear(32, LATENT)
        self.blocks = nn.ModuleList(GatedBlock(LATENT) for _ in range(BLOCKS))
        self.gate = nn.Linear(2 * LATENT, LATENT)
        self.head = nn.Linear(LATENT, HORIZON)
        # principal lunar / solar constituents, in ticks
        periods = torch.tensor([12.42, 12.0, 12.66, 23.93, 25.82, 11.97, 26.87, 24.07,
                                327.9, 661.3, 354.4, 6.21, 6.1, 4.14, 8.18, 3.1])
        self.register_buffer("omega", 2 * math.pi / (periods * 60.0))

    def forward(self, state, frame, tick):
        angle = self.omega * tick
        phase = torch.cat([angle.sin(), angle.cos()])
        x = self.read_in(frame) + self.phase_in(phase)
        for block in self.blocks:
            x = block(x)
        keep = torch.sigmoid(self.gate(torch.cat([state, x], dim=-1)))
        state = keep * state + (1 - keep) * x
        return state, self.head(state)


def make_frames(n):
    t = torch.arange(n, device=device).float()[:, None, None]
    base = torch.sin(t / 120 + torch.arange(CLUSTERS, device=device)[None, :, None])
    return base + 0.1 * torch.randn(n, CLUSTERS, READINGS, device=device)


@torch.no_grad()
def main():
    model = TideModel().to(device).eval()
    advance = torch.compile(model, mode="reduce-overhead")

    frames = make_frames(512)
    state = torch.zeros(CLUSTERS, LATENT, device=device)
    running = torch.zeros(HORIZON, device=device)
    clock = torch.zeros((), device=device)

    for tick in range(8):
        s, _ = advance(state, frames[tick], clock.fill_(tick))
        state = s.clone()
    if device == "cuda":
        torch.cuda.synchronize()

    start = time.time()
    for step in range(STEPS):
        tick = 8 + step
        s, forecast = advance(state, frames[tick % 512], clock.fill_(tick))
        state = s.clone()
        running.mul_(0.99).add_(forecast.mean(0), alpha=0.01)
        if step % 500 == 0:
            print(f"tick {tick:6d}  next-hour level {running[0].item():+.4f}")
    if device == "cuda":
        torch.cuda.synchronize()
    took = time.time() - start
    print(f"{STEPS} ticks in {took:.1f} s, {took / STEPS * 1e3:.3f} ms each")


if __name__ == "__main__":
    main()
