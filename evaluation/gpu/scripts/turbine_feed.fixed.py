"""Learn which turbine a vibration window came from; windows stream through one pinned buffer."""
import os

import numpy as np
import torch
from torch import nn
import torch.nn.functional as F

DEVICE = torch.device("cuda")
STEPS = int(os.environ.get("STEPS", "4000"))
TURBINES, WINDOW, BATCH, WIDTH = 16, 128, 2048, 8192
PLAN = 64


class Recorder:
    """Host-side store of windows, one signature per turbine."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.signature = rng.standard_normal((TURBINES, WINDOW)).astype(np.float32)
        self.labels = rng.integers(0, TURBINES, (PLAN, BATCH))
        hiss = rng.standard_normal((PLAN, BATCH, WINDOW), dtype=np.float32)
        self.windows = torch.from_numpy(0.5 * self.signature[self.labels] + hiss)

    def fill(self, index, buffer):
        buffer.copy_(self.windows[index % PLAN])


class Feed:
    def __init__(self, recorder):
        self.recorder = recorder
        self.staging = torch.empty(BATCH, WINDOW, pin_memory=True)
        self.copied = torch.cuda.Event()
        self.labels = torch.from_numpy(recorder.labels).to(DEVICE)

    def batch(self, index):
        self.copied.synchronize()
        self.recorder.fill(index, self.staging)
        windows = self.staging.to(DEVICE, non_blocking=True)
        self.copied.record()
        return windows, self.labels[index % PLAN]


def classifier():
    return nn.Sequential(
        nn.Linear(WINDOW, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH), nn.GELU(),
        nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, TURBINES),
    )


def main():
    torch.manual_seed(23)
    feed = Feed(Recorder(40))
    model = classifier().to(DEVICE)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05, fused=True)

    @torch.compile
    def loss_of(windows, labels):
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
            scores = model(windows)
        return F.cross_entropy(scores.float(), labels), (scores.argmax(-1) == labels).float().mean()

    hits = torch.zeros((), device=DEVICE)
    for step in range(STEPS):
        loss, hit = loss_of(*feed.batch(step))
        loss.backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        hits = 0.95 * hits + 0.05 * hit
        if step % 100 == 99:
            print(f"step {step + 1} loss {loss.item():.4f} hit rate {hits.item():.4f}")
    print("hit rate", round(hits.item(), 4))


main()
