"""Autoregressive rollout of an ocean-state emulator with scheduled forcing."""
import logging
import math
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
DTYPE = torch.bfloat16 if DEVICE.type == "cuda" else torch.float32
CELLS = 128 if SMALL else 4096
WIDTH = 128 if SMALL else 4096
BLOCKS = 4
logger = logging.getLogger("ocean")


def sync():
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(WIDTH))
        self.up = nn.Linear(WIDTH, 2 * WIDTH)
        self.down = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x, forcing):
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
        y = (y * self.scale.float() * (1.0 + forcing)).to(x.dtype)
        return x + 0.1 * self.down(F.silu(self.up(y)))


class Emulator(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))

    def forward(self, state, forcing):
        x = state.clone()
        for block in self.blocks:
            x = block(x, forcing)
        logger.debug("rolled out %s", tuple(x.shape))
        return torch.tanh(x.contiguous() / 4.0) * 4.0


def main():
    torch.manual_seed(0)
    emulator = Emulator().to(DEVICE, DTYPE).eval()
    advance = torch.compile(emulator)
    state = torch.randn(CELLS, WIDTH, device=DEVICE, dtype=DTYPE)
    energies = []

    half = STEPS // 2
    start = None
    with torch.no_grad():
        for i in range(STEPS):
            if i == half:
                sync()
                start = time.perf_counter()
            forcing = 0.05 * math.sin(2.0 * math.pi * i / 73.0)
            state = advance(state, forcing)
            if i % 20 == 0:
                energies.append(state.float().square().mean().item())
    sync()
    elapsed = time.perf_counter() - start
    print(f"energy first {energies[0]:.4f} last {energies[-1]:.4f}")
    print(f"step_ms={elapsed * 1e3 / max(1, STEPS - half):.3f}")


if __name__ == "__main__":
    main()
