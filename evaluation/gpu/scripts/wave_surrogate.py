"""Surrogate for wave-tank simulations: wide residual MLP on Fourier-feature inputs, bf16, ragged epochs."""
import logging
import os
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger("wave")

SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
DTYPE = torch.bfloat16 if device.type == "cuda" else torch.float32

PROBES, BATCH, LAST = (1000, 96, 40) if SMALL else (400_000, 8192, 4096)
WIDTH, DEPTH, FREQS = (64, 2, 8) if SMALL else (2560, 5, 64)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.a = nn.Linear(WIDTH, WIDTH)
        self.b = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        h = self.a(self.norm(x))
        return x + self.b(torch.sin(4.0 * h) * torch.exp(-0.5 * h * h))


class Surrogate(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("freqs", torch.from_numpy(np.geomspace(0.5, 40.0, FREQS)))
        self.lift = nn.Linear(8 * FREQS, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.drop = nn.Linear(WIDTH, 4)
        self.seen = {}

    def encode(self, xyzt):
        phase = (xyzt.double()[..., None] * self.freqs).flatten(1)
        return torch.cat([phase.sin(), phase.cos()], dim=-1).to(DTYPE)

    def forward(self, xyzt):
        x = self.lift(self.encode(xyzt))
        for block in self.blocks:
            x = block(x)
        self.note(x)
        return self.drop(x).float()

    @torch.compiler.disable
    def note(self, x):
        n = x.shape[0]
        self.seen[n] = self.seen.get(n, 0) + 1


def sync():
    if device.type == "cuda":
        torch.cuda.synchronize()


def main():
    torch.manual_seed(0)
    model = Surrogate().to(device)
    for part in (model.lift, model.blocks, model.drop):
        part.to(DTYPE)
    net = torch.compile(model)
    opt = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, fused=device.type == "cuda")
    rng = np.random.default_rng(3)
    coords = torch.from_numpy(rng.random((PROBES, 4), dtype=np.float32)).to(device)
    field = torch.sin(coords @ torch.from_numpy(rng.standard_normal((4, 4), dtype=np.float32)).to(device))
    half = STEPS // 2
    at = 0
    for i in range(STEPS):
        if i == half:
            sync()
            t0 = time.perf_counter()
        size = LAST if i % 10 == 9 else BATCH
        at = 0 if at + size > PROBES else at
        x, y = coords[at:at + size], field[at:at + size]
        at += size
        loss = F.mse_loss(net(x), y)
        loss.backward()
        opt.step()
        opt.zero_grad()
        if i % 50 == 0:
            log.info("step %d loss %.5f", i, loss.item())
    sync()
    elapsed = (time.perf_counter() - t0) / (STEPS - half)
    log.info("batches by size: %s", model.seen)
    print(f"step_ms={elapsed * 1e3:.3f}")


if __name__ == "__main__":
    main()
