"""Grading of seed lots on a sorting conveyor.

A small deep network scores the spectral features of every tray that passes the camera;
the soft grades are added up per lot.  Weights come from the breeding lab.
"""
import os
import time

import torch
from torch import nn

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
DEPTH = 3 if SMALL else 32
WIDTH = 128
GRADES = 9
TRAY = 48
BANDS = 64


class Stage(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(torch.nn.functional.silu(self.up(self.norm(x))))


class Grader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(BANDS, WIDTH)
        self.stages = nn.ModuleList(Stage(WIDTH) for _ in range(DEPTH))
        self.head = nn.Linear(WIDTH, GRADES)

    def forward(self, spectra):
        x = self.embed(torch.log1p(spectra))
        for stage in self.stages:
            x = stage(x)
        return self.head(x)


def trays(gen, device, n=12):
    """Reflectance spectra of n trays, one row per seed."""
    base = torch.rand(n, 1, BANDS, generator=gen)
    return (base + 0.1 * torch.rand(n, TRAY, BANDS, generator=gen)).to(device)


def clock():
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def main():
    torch.manual_seed(3)
    gen = torch.Generator().manual_seed(3)
    grader = Grader().to(DEVICE).eval()
    score = torch.compile(grader, mode="reduce-overhead")
    belt = trays(gen, DEVICE)
    lots = torch.zeros(4, GRADES, device=DEVICE)
    rejects = torch.zeros((), device=DEVICE)
    half = STEPS // 2
    t0 = clock()
    for step in range(STEPS):
        if step == half:
            t0 = clock()
        logits = score(belt[step % len(belt)])
        soft = torch.softmax(logits.detach(), dim=1)
        lots[step % 4] += soft.sum(0)
        rejects += (soft[:, -1] > 0.2).sum()
    ms = (clock() - t0) * 1e3 / (STEPS - half)
    share = lots / lots.sum(1, keepdim=True).clamp_min(1e-6)
    print("lot shares", [round(v, 4) for v in share[0].tolist()], "rejects", int(rejects.item()))
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()
