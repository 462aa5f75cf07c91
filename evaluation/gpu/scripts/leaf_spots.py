"""Train a spot detector on photographs of leaves held in memory."""
import os
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

DEVICE = "cuda"
BATCH = 32
STEPS = int(os.environ.get("STEPS", "900"))


class Detector(nn.Module):
    def __init__(self, ch=32):
        super().__init__()
        self.c1 = nn.Conv2d(3, ch, 3, stride=2, padding=1)
        self.b1 = nn.BatchNorm2d(ch)
        self.c2 = nn.Conv2d(ch, 2 * ch, 3, stride=2, padding=1)
        self.b2 = nn.BatchNorm2d(2 * ch)
        self.c3 = nn.Conv2d(2 * ch, 4 * ch, 3, stride=2, padding=1)
        self.b3 = nn.BatchNorm2d(4 * ch)
        self.head = nn.Linear(4 * ch, 6)

    def forward(self, x):
        x = F.silu(self.b1(self.c1(x)))
        x = F.silu(self.b2(self.c2(x)))
        x = F.silu(self.b3(self.c3(x)))
        return self.head(x.mean(dim=(2, 3)))


class LeafPhotos:
    def __init__(self, n=2000, size=112, crop=96, seed=0):
        self.rng = np.random.default_rng(seed)
        self.photos = self.rng.integers(0, 256, (n, size, size, 3), dtype=np.uint8)
        self.labels = self.rng.integers(0, 6, n)
        self.size, self.crop = size, crop

    def augment(self, photo):
        top, left = self.rng.integers(0, self.size - self.crop, 2)
        img = photo[top:top + self.crop, left:left + self.crop].astype(np.float32) / 255.0
        if self.rng.random() < 0.5:
            img = img[:, ::-1]
        img = (img - 0.5) * self.rng.uniform(0.8, 1.2) + 0.5
        img = img + self.rng.normal(0.0, 0.02, img.shape).astype(np.float32)
        return np.clip(img, 0.0, 1.0).transpose(2, 0, 1)

    def batch(self, n):
        pick = self.rng.integers(0, len(self.photos), n)
        images = np.stack([self.augment(self.photos[i]) for i in pick])
        return torch.from_numpy(images), torch.from_numpy(self.labels[pick])


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    data = LeafPhotos()
    net = Detector().to(DEVICE)
    net.compile()
    opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    seen, t0 = 0, time.perf_counter()
    for step in range(STEPS):
        images, labels = data.batch(BATCH)
        images, labels = images.to(DEVICE), labels.to(DEVICE)
        loss = F.cross_entropy(net(images), labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
        seen += BATCH
        if (step + 1) % 100 == 0:
            rate = seen / (time.perf_counter() - t0)
            print(f"{step + 1:4d}: loss {loss.item():.3f}  {rate:.0f} photos/s")
            seen, t0 = 0, time.perf_counter()


if __name__ == "__main__":
    main()
