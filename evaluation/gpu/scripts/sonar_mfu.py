import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

DEV = torch.device("cuda" if torch.cuda.is_available() else "cpu")
STEPS = int(os.environ.get("STEPS", "300"))
SMALL = os.environ.get("SMALL") == "1"

PINGS = 64 if SMALL else 32768
BINS = 32 if SMALL else 256
WIDTH = 32 if SMALL else 512
DEPTH = 2 if SMALL else 5
PEAK = 800e12


class EchoBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix = nn.Linear(width, width, bias=False)
        self.gain = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width))
        self.knee = nn.Parameter(torch.full((width,), 0.5))

    def forward(self, x, depth_db):
        h = x * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-5).to(x.dtype)
        h = h * self.gain + self.shift
        loud = torch.sigmoid(depth_db * self.knee)
        h = torch.where(h.abs() > self.knee, self.knee * torch.tanh(h / (self.knee + 1e-3)), h)
        h = self.mix(h * loud)
        h = F.silu(h) * torch.exp(-0.05 * h.square()) + 0.1 * torch.sin(3.0 * h)
        return x + h * loud


class Bathymeter(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(BINS, WIDTH)
        self.blocks = nn.ModuleList(EchoBlock(WIDTH) for _ in range(DEPTH))
        self.head = nn.Linear(WIDTH, 8)

    def forward(self, pings, depth_db):
        x = self.lift(pings)
        for block in self.blocks:
            x = block(x, depth_db)
        return self.head(x)


def sync():
    if DEV.type == "cuda":
        torch.cuda.synchronize()


def main():
    torch.manual_seed(11)
    dtype = torch.bfloat16 if DEV.type == "cuda" else torch.float32
    net = Bathymeter().to(DEV, dtype).eval()
    model = torch.compile(net)
    batches = [torch.randn(PINGS, BINS, device=DEV, dtype=dtype) for _ in range(4)]
    depth_db = torch.rand(PINGS, 1, device=DEV, dtype=dtype)

    with torch.no_grad():
        with FlopCounterMode(display=False) as counter:
            model(batches[0], depth_db)
        flops = counter.get_total_flops()

        total = torch.zeros(8, device=DEV)
        t0 = time.perf_counter()
        for step in range(STEPS):
            if step == STEPS // 2:
                sync()
                t0 = time.perf_counter()
            out = model(batches[step % 4], depth_db)
            total += out.float().mean(0)
        sync()
    ms = (time.perf_counter() - t0) * 1e3 / (STEPS - STEPS // 2)
    print(f"mean depth code {total.mean().item() / STEPS:.5f}")
    print(f"flops/step={flops:.3e} mfu={100 * flops / (ms * 1e-3) / PEAK:.2f}%")
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()
