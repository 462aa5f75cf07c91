"""Clean-up stage for a push-broom hyperspectral camera on a sorting belt.

Frames arrive as (height, width, band) arrays.  Bands are grouped by sensor
segment, evened out, gated and mixed into a ripeness score per frame.
"""
import os
import numpy as np
import torch
from torch import nn

torch.set_num_threads(1)

STEPS = int(os.environ.get("STEPS", "4000"))
BANDS = 64
SEGMENTS = 32
HEIGHT, WIDTH = 56, 56
FRAMES_PER_BATCH = 8


class SegmentStage(nn.Module):
    def __init__(self, bands, segments):
        super().__init__()
        self.norm = nn.GroupNorm(segments, bands)
        self.gain = nn.Parameter(torch.ones(bands, 1, 1))
        self.bias = nn.Parameter(torch.zeros(bands, 1, 1))

    def forward(self, x):
        y = self.norm(x)
        gate = torch.sigmoid(self.gain * y + self.bias)
        return y * gate


class BeltCleaner(nn.Module):
    def __init__(self, bands=BANDS, segments=SEGMENTS, depth=2):
        super().__init__()
        self.stages = nn.ModuleList(
            [SegmentStage(bands, segments) for _ in range(depth)]
        )
        self.mix = nn.Linear(bands, 3)

    def forward(self, x):
        for stage in self.stages:
            x = stage(x)
        pooled = x.mean(dim=(2, 3))
        return self.mix(pooled)


class BeltCamera:
    """Stand-in for the acquisition card: a ring of recorded frames."""

    def __init__(self, n_batches=6, seed=11):
        rng = np.random.default_rng(seed)
        self.ring = []
        for _ in range(n_batches):
            base = rng.gamma(2.0, 0.2, size=(FRAMES_PER_BATCH, HEIGHT, WIDTH, 1))
            noise = rng.normal(0, 0.05, size=(FRAMES_PER_BATCH, HEIGHT, WIDTH, BANDS))
            self.ring.append((base + noise).astype(np.float32))
        self.pos = 0

    def grab(self):
        frame = self.ring[self.pos % len(self.ring)]
        self.pos += 1
        return frame


def to_batch(frames):
    t = torch.from_numpy(frames)
    return t.permute(0, 3, 1, 2)


def main():
    torch.manual_seed(3)
    camera = BeltCamera()
    model = BeltCleaner().eval()
    model = torch.compile(model)

    tally = torch.zeros(3)
    with torch.no_grad():
        for i in range(STEPS):
            batch = to_batch(camera.grab())
            scores = model(batch)
            tally += torch.bincount(scores.argmax(1), minlength=3)
            if i % 1000 == 0:
                print(f"batch {i:5d}  mean score {scores.mean().item():+.4f}")
    print("class counts:", tally.int().tolist())


if __name__ == "__main__":
    main()
