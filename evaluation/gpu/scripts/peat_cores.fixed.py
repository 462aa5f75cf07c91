"""Carbon and nitrogen content of peat cores from near-infrared scans."""
import os
import time

import torch
import torch.nn as nn

small = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = int(os.environ.get("STEPS", 300))
CHANNELS, WIDTH, DEPTH = (64, 32, 4) if small else (700, 256, 48)
BATCH = 64 if small else 512


class ScanNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(CHANNELS, WIDTH)
        self.body = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(DEPTH))
        self.gains = nn.ParameterList(torch.full((WIDTH,), 0.2) for _ in range(DEPTH))
        self.head = nn.Linear(WIDTH, 2)

    def forward(self, scan):
        h = self.stem(scan)
        for layer, gain in zip(self.body, self.gains):
            h = torch.addcmul(h, gain, torch.relu(layer(h)))
        return self.head(h)


def cores(n):
    gen = torch.Generator().manual_seed(8)
    depth = torch.rand(n, 1, generator=gen)
    grid = torch.linspace(0, 1, CHANNELS)
    scan = torch.exp(-((grid - depth) / 0.1) ** 2) + 0.02 * torch.randn(n, CHANNELS, generator=gen)
    target = torch.cat([45 + 10 * depth, 1.2 + depth.square()], 1) / 50
    return scan.to(device), target.to(device)


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    net = ScanNet().to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    fast_net = torch.compile(net)
    scans, targets = cores(BATCH * 16)
    began = time.perf_counter()
    for step in range(STEPS):
        lo = (step % 16) * BATCH
        loss = nn.functional.smooth_l1_loss(fast_net(scans[lo:lo + BATCH]), targets[lo:lo + BATCH])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 50 == 0:
            print(f"step {step:4d} loss {loss.item():.5f} ({time.perf_counter() - began:.1f} s)")


if __name__ == "__main__":
    main()
