"""Occupancy map of a pixel detector: every read-out frame adds its hits to a
running per-pixel counter; dead pixels are masked and a mean rate is tracked."""
import os
import time
import torch

STEPS = int(os.environ.get("STEPS", "6000"))
device = "cuda"
N_HITS = 8_000_000
NX, NY = 1024, 1024

torch.manual_seed(11)


@torch.compile
def add_frame(counts, xy, offset, live):
    p = (xy + offset).remainder(1.0)
    ix = (p[:, 0] * NX).long().clamp(0, NX - 1)
    iy = (p[:, 1] * NY).long().clamp(0, NY - 1)
    pixel = ix * NY + iy
    hit = live[pixel].long()
    counts.scatter_add_(0, pixel, hit)
    return hit.sum()


frames = [torch.rand(N_HITS, 2, device=device) for _ in range(4)]
offset = torch.tensor([0.13, 0.57], device=device)
live = torch.rand(NX * NY, device=device) > 0.02
counts = torch.zeros(NX * NY, dtype=torch.int64, device=device)
total = torch.zeros((), dtype=torch.int64, device=device)

half = STEPS // 2
t0 = 0.0
for step in range(STEPS):
    if step == half:
        torch.cuda.synchronize()
        t0 = time.perf_counter()
    total += add_frame(counts, frames[step % 4], offset, live)
torch.cuda.synchronize()
x = (time.perf_counter() - t0) * 1e3 / (STEPS - half)
print(f"ms per step {x:.4f}")
result = counts
