"""Residual CNN that cleans fluorescence frames; the microscope crops the region of interest as it goes."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
DTYPE = torch.bfloat16 if DEVICE.type == "cuda" else torch.float32
WIDTH, DEPTH = (16, 2) if SMALL else (96, 5)
CROPS = [(48, 64), (64, 64), (64, 80)] if SMALL else [(448, 512), (512, 512), (512, 576), (576, 576)]
BATCH = 2 if SMALL else 4


class ResidualPair(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a = nn.Conv2d(width, width, 3, padding=1)
        self.b = nn.Conv2d(width, width, 3, padding=1)
        self.gain = nn.Parameter(torch.full((1, width, 1, 1), 0.2))

    def forward(self, x):
        return x + self.gain * self.b(F.silu(self.a(x)))


class FrameCleaner(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.head = nn.Conv2d(8, width, 3, padding=1)
        self.body = nn.Sequential(*[ResidualPair(width) for _ in range(depth)])
        self.tail = nn.Conv2d(width, 8, 3, padding=1)

    def forward(self, frames):
        x = torch.sqrt(frames.clamp_min(0) + 0.375)
        return (x - self.tail(self.body(self.head(x)))).square() - 0.375


def load_model():
    model = FrameCleaner(WIDTH, DEPTH).eval()
    return model.to(DEVICE, DTYPE)


def acquire(gen):
    stacks = []
    for h, w in CROPS:
        stack = torch.rand(BATCH, 8, h, w, generator=gen) * 4
        stacks.append(stack.to(DEVICE, DTYPE))
    return stacks


def main():
    steps = int(os.environ.get("STEPS", "300"))
    torch.manual_seed(31)
    torch.backends.cudnn.benchmark = True
    cleaner = torch.compile(load_model(), dynamic=False)
    stacks = acquire(torch.Generator().manual_seed(8))
    brightness = torch.zeros((), device=DEVICE)
    with torch.no_grad():
        for step in range(steps):
            if step == steps // 2:
                if DEVICE.type == "cuda":
                    torch.cuda.synchronize()
                t0 = time.perf_counter()
            clean = cleaner(stacks[step % len(stacks)])
            brightness += clean.float().mean()
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
    ms = (time.perf_counter() - t0) * 1e3 / (steps - steps // 2)
    print("mean brightness", (brightness / steps).item())
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()
