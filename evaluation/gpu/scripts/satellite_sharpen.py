"""Sharpening of multispectral satellite tiles. The network may invent detail, but seen through
the sensor (which blurs and samples 8 times coarser) its image has to agree with the measured tile."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_float32_matmul_precision("high")
torch.manual_seed(11)

STEPS = int(os.environ.get("STEPS", "3000"))
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TILES, BANDS = 8, 16
COARSE, FINE = 64, 512


class Sensor(nn.Module):
    """What the instrument would record of a fine image."""

    def forward(self, image):
        return F.interpolate(image, size=(COARSE, COARSE), mode="bicubic", antialias=True)


class Sharpener(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.lift = nn.Conv2d(BANDS, width, 3, padding=1)
        self.mix = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(4))
        self.out = nn.Conv2d(width, BANDS * 64, 1)
        self.shuffle = nn.PixelShuffle(8)

    def forward(self, tile):
        h = F.gelu(self.lift(tile))
        for conv in self.mix:
            h = h + F.gelu(conv(h))
        return self.shuffle(self.out(h))


class Objective(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.sensor = Sensor()

    def forward(self, tile):
        fine = self.net(tile)
        consistency = F.mse_loss(self.sensor(fine), tile)
        energy = fine.square().mean()
        return consistency + 0.01 * energy


def main():
    objective = Objective(Sharpener()).to(DEVICE)
    opt = torch.optim.Adam(objective.parameters(), lr=1e-3, fused=DEVICE == "cuda")
    compiled = torch.compile(objective)
    tiles = [torch.rand(TILES, BANDS, COARSE, COARSE, device=DEVICE) for _ in range(6)]

    def train_step(tile):
        opt.zero_grad(set_to_none=True)
        loss = compiled(tile)
        loss.backward()
        opt.step()
        return loss.detach()

    for k in range(8):
        train_step(tiles[k % 6])
    torch.cuda.synchronize()

    timed_from = STEPS - max(1, STEPS // 3)
    start = None
    for k in range(STEPS):
        if k == timed_from:
            torch.cuda.synchronize()
            start = time.perf_counter()
        loss = train_step(tiles[k % 6])
        if k % 400 == 0:
            print(f"{k}: objective {loss.item():.6f}")
    torch.cuda.synchronize()
    elapsed = time.perf_counter() - start
    print(f"ms per step: {1000 * elapsed / (STEPS - timed_from):.3f}")


if __name__ == "__main__":
    main()
