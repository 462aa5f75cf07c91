"""Sea-surface-height emulator: an MLP-Mixer on ocean tiles that predicts the anomaly field of
the next day from that of today. The tiles of one day form a batch."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
TILES, PATCHES, DIM, DEPTH = (2, 64, 32, 2) if SMALL else (16, 256, 384, 4)
PIXELS = 64
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class MixBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.tok = nn.Sequential(nn.Linear(PATCHES, 2 * PATCHES), nn.GELU(), nn.Linear(2 * PATCHES, PATCHES))
        self.chan = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, x):
        x = x + self.tok(self.n1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.chan(self.n2(x))


class Emulator(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(PIXELS, DIM)
        self.blocks = nn.ModuleList(MixBlock() for _ in range(DEPTH))
        self.head = nn.Linear(DIM, PIXELS)

    def forward(self, ssh):
        x = self.stem(ssh)
        for block in self.blocks:
            x = block(x)
        return ssh + self.head(x)


def synthetic_day(day, coords):
    a = torch.sin(3.0 * coords + 0.07 * day) + 0.5 * torch.sin(11.0 * coords - 0.19 * day)
    return a.reshape(TILES, PATCHES, PIXELS).to(torch.bfloat16)


def main():
    torch.manual_seed(5)
    coords = torch.rand(TILES * PATCHES * PIXELS, device=device)
    net = Emulator().to(device=device, dtype=torch.bfloat16)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True)
    forecast = torch.compile(net)
    pinned = device.type == "cuda"

    half = STEPS // 2
    today = synthetic_day(0, coords)
    for step in range(STEPS):
        if step == half:
            if pinned:
                torch.cuda.synchronize()
            t0 = time.perf_counter()
        tomorrow = synthetic_day(step + 1, coords)
        loss = F.smooth_l1_loss(forecast(today).float(), tomorrow.float())
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        today = tomorrow
    if pinned:
        torch.cuda.synchronize()
    t1 = time.perf_counter()
    print(f"loss {loss.item():.5f}")
    print(f"step_ms={(t1 - t0) * 1e3 / (STEPS - half):.3f}")


if __name__ == "__main__":
    main()
