"""Classify small sonar waterfall patches (clutter / mine-like / biological)."""
import os
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(5)

STEPS = int(os.environ.get("STEPS", "2000"))
BATCH = 24
SIDE = 48
CLASSES = 3


def synth_patch(rng: np.random.Generator, label: int) -> np.ndarray:
    img = rng.rayleigh(0.4, size=(SIDE, SIDE)).astype(np.float32)
    cy, cx = rng.integers(10, SIDE - 10, size=2)
    yy, xx = np.mgrid[0:SIDE, 0:SIDE]
    if label == 1:
        img += 2.0 * np.exp(-(((yy - cy) / 2.5) ** 2 + ((xx - cx) / 5.0) ** 2))
        img[cy : cy + 6, max(0, cx - 4) : cx + 4] *= 0.2
    elif label == 2:
        for _ in range(6):
            dy, dx = rng.integers(-8, 8, size=2)
            img += np.exp(-(((yy - cy - dy) ** 2 + (xx - cx - dx) ** 2) / 4.0))
    return np.log1p(img)


def build_dataset(n: int, seed: int):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, CLASSES, size=n)
    imgs = np.stack([synth_patch(rng, int(k)) for k in labels])[:, None]
    return torch.from_numpy(imgs), torch.from_numpy(labels.astype(np.int64))


def halve(x: torch.Tensor) -> torch.Tensor:
    return F.max_pool2d(x, 2)


class PatchNet(nn.Module):
    def __init__(self, width: int = 12):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, padding=1)
        self.mid = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.head = nn.Linear(2 * width * (SIDE // 8) ** 2, CLASSES)

    def forward(self, x):
        x = halve(F.relu(self.stem(x)))
        x = halve(F.relu(self.mid(x)))
        x = F.avg_pool2d(x, 2)
        return self.head(x.flatten(1))


def main():
    images, labels = build_dataset(480, seed=3)
    net = PatchNet()
    net_c = torch.compile(net)
    opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    order = torch.randperm(len(images))
    running = None
    start = time.time()
    for step in range(STEPS):
        lo = (step * BATCH) % len(images)
        idx = order[lo : lo + BATCH]
        x, y = images[idx], labels[idx]
        loss = F.cross_entropy(net_c(x), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        running = loss.detach() if running is None else 0.95 * running + 0.05 * loss.detach()
        if step % 300 == 0:
            print(f"step {step:5d} loss {running.item():.4f}")
    with torch.no_grad():
        acc = (net(images[:240]).argmax(1) == labels[:240]).float().mean()
    print(f"loss {running.item():.4f} acc {acc:.3f} time {time.time() - start:.1f}s")


if __name__ == "__main__":
    main()
