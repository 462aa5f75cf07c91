"""Shakes a net of springs, as a game would for its trampolines; two frames are kept and swapped."""
import os
import time
from contextlib import contextmanager

import torch

SIDE = int(os.environ.get("NET_SIDE", "640"))
FRAMES = int(os.environ.get("NET_FRAMES", "20000"))


@contextmanager
def stopwatch(what):
    start = time.perf_counter()
    yield
    print(f"{what}: {time.perf_counter() - start:.1f} s")


@torch.compile(fullgraph=True)
def shake(height, speed, out, stiff, loss):
    if not torch.compiler.is_compiling():
        print("height", height.abs().max())
    pull = (torch.roll(height, 1, 0) + torch.roll(height, -1, 0)
            + torch.roll(height, 1, 1) + torch.roll(height, -1, 1) - 4.0 * height)
    stretch = stiff * pull / (1.0 + pull.square())
    speed.mul_(loss).add_(stretch, alpha=0.05).clamp_(-2.0, 2.0)
    out.copy_(height + 0.05 * speed)


class Net:
    def __init__(self, side):
        torch.manual_seed(6)
        self.frames = [torch.randn(side, side) * 0.1, torch.zeros(side, side)]
        self.speed = torch.zeros(side, side)
        self.stiff = torch.rand(side, side) + 0.5
        self.loss = torch.full((side, side), 0.999)

    def step(self):
        now, then = self.frames
        shake(now, self.speed, then, self.stiff, self.loss)
        self.frames = [then, now]


@torch.no_grad()
def play():
    net = Net(SIDE)
    with stopwatch("warm up"):
        net.step()
    with stopwatch(f"{FRAMES} frames"):
        for frame in range(FRAMES):
            net.step()
            if frame % 2000 == 1999:
                print(f"frame {frame + 1}: {net.frames[0].std().item():.4f}")


if __name__ == "__main__":
    play()
