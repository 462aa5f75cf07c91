"""Multi-resolution smoothing of a sea-floor mesh whose vertices are re-ordered per level."""
import os

import numpy as np
import torch
from torch import nn

DEVICE = torch.device("cuda")
STEPS = int(os.environ.get("STEPS", "6000"))
VERTICES, CHANNELS, LEVELS = 163_840, 16, 8


def bit_shuffle(count, level, rng):
    """Order of visit: blocks of 2**level vertices, blocks drawn at random."""
    block = 1 << (level + 2)
    starts = rng.permutation(count // block) * block
    return (starts[:, None] + np.arange(block)[None]).reshape(-1)


class Level(nn.Module):
    def __init__(self, level, rng):
        super().__init__()
        order = bit_shuffle(VERTICES, level, rng)
        self.register_buffer("visit", torch.from_numpy(order))
        self.weight = nn.Parameter(torch.tensor([0.25, 0.5, 0.25]))
        self.mix = nn.Parameter(torch.eye(CHANNELS) + 0.02 * torch.randn(CHANNELS, CHANNELS))
        self.register_buffer("depth", torch.tensor(float(level + 1)))

    def forward(self, field):
        z = field[self.visit]
        left, right = torch.roll(z, 1, 0), torch.roll(z, -1, 0)
        smooth = self.weight[0] * left + self.weight[1] * z + self.weight[2] * right
        return torch.tanh(smooth @ self.mix) + field / self.depth


class Ladder(nn.Module):
    def __init__(self, seed):
        super().__init__()
        rng = np.random.default_rng(seed)
        self.levels = nn.ModuleList(Level(i, rng) for i in range(LEVELS))

    def forward(self, field):
        for level in self.levels:
            field = level(field)
        return field


@torch.no_grad()
def main():
    torch.manual_seed(8)
    torch.set_float32_matmul_precision("high")
    ladder = Ladder(21).to(DEVICE).eval()
    smooth = torch.compile(ladder)
    sounding = torch.randn(VERTICES, CHANNELS, device=DEVICE)
    for step in range(STEPS):
        relief = smooth(sounding)
        sounding = 0.98 * sounding + 0.02 * relief.clamp(-2, 2)
        if step % 200 == 199:
            print(f"step {step + 1} roughness {relief.std().item():.5f}")
    print("mean depth", round(sounding.mean().item(), 6))


main()
