"""Samples robot-arm trajectories from a trained denoiser (ancestral sampler, small batch)."""
import math
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
WIDTH = 64 if SMALL else 4096
BLOCKS = 2 if SMALL else 8
BATCH = 16
HORIZON, JOINTS = 32, 14


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 2 * WIDTH)
        self.down = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, h, temb):
        return h + self.down(F.gelu(self.up(self.norm(h) + temb)))


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(HORIZON * JOINTS, WIDTH)
        self.time = nn.Linear(64, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.out = nn.Linear(WIDTH, HORIZON * JOINTS)
        freqs = torch.exp(-math.log(1e4) * torch.arange(32) / 32)
        self.register_buffer("freqs", freqs)

    def forward(self, x, t):
        ang = t[:, None] * self.freqs
        temb = self.time(torch.cat([ang.sin(), ang.cos()], -1))
        h = self.inp(x)
        for block in self.blocks:
            h = block(h, temb)
        return self.out(h).float()


def clock():
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


@torch.no_grad()
def main():
    torch.manual_seed(0)
    with device:
        net = Denoiser()
    net.eval()
    for m in net.modules():
        if isinstance(m, nn.Linear):
            m.to(torch.bfloat16)
    denoise = torch.compile(net)
    levels = torch.linspace(1.0, 0.02, 50, device=device)
    x = torch.randn(BATCH, HORIZON * JOINTS, device=device)
    finished = []
    start = clock()
    with torch.autocast(device.type, dtype=torch.bfloat16):
        for step in range(STEPS):
            if step == STEPS // 2:
                start = clock()
            k = step % 50
            t = levels[k].expand(BATCH).contiguous()
            eps = denoise(x, t)
            x = (x - 0.02 * eps) * 0.999 + 0.02 * torch.randn_like(x)
            if k == 49:
                finished.append(x.view(BATCH, HORIZON, JOINTS))
                x = torch.randn_like(x)
        elapsed = clock() - start
    finished.append(x.view(BATCH, HORIZON, JOINTS))
    print(f"trajectories {len(finished) * BATCH}, spread {torch.cat(finished).std().item():.4f}")
    print(f"step_ms={elapsed / (STEPS - STEPS // 2) * 1e3:.3f}")


if __name__ == "__main__":
    main()
