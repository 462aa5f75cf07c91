"""Kelp canopy extent from drone video: training the per-frame segmentation net."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

small = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = int(os.environ.get("STEPS", 250))
BATCH, SIDE, WIDTH, DEPTH = (2, 32, 8, 3) if small else (8, 128, 48, 14)


class Fronds(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.GroupNorm(6 if width % 6 == 0 else 4, width)
        self.spread = nn.Conv2d(width, 2 * width, 1)
        self.gather = nn.Conv2d(2 * width, width, 3, padding=1)

    def forward(self, x):
        h = F.silu(self.spread(self.norm(x)))
        return x + self.gather(h * torch.sigmoid(h.mean((2, 3), keepdim=True)))


class KelpNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, WIDTH, 5, padding=2)
        self.blocks = nn.Sequential(*[Fronds(WIDTH) for _ in range(DEPTH)])
        self.head = nn.Conv2d(WIDTH, 1, 1)

    def forward(self, frame):
        return self.head(self.blocks(self.stem(frame))).squeeze(1)


def main():
    torch.manual_seed(21)
    torch.set_float32_matmul_precision("high")
    net = KelpNet().to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, fused=device == "cuda")
    compiled = torch.compile(net)
    frames = torch.rand(12, BATCH, 3, SIDE, SIDE, device=device)
    canopy = (torch.rand(12, BATCH, SIDE, SIDE, device=device) > 0.7).float()
    began = time.perf_counter()
    for step in range(STEPS):
        k = step % 12
        loss = F.binary_cross_entropy_with_logits(compiled(frames[k]), canopy[k])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 25 == 0:
            print(f"step {step:4d} loss {loss.item():.4f} ({time.perf_counter() - began:.1f} s)")


if __name__ == "__main__":
    main()
