"""4x super-resolution of satellite tiles: light generator, pixel loss plus feature loss."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
DTYPE = torch.bfloat16 if device.type == "cuda" else torch.float32

BATCH, LOW = (2, 16) if SMALL else (16, 48)
GEN = 16 if SMALL else 32
FEATURE = (8, 16, 16) if SMALL else (64, 128, 256)


class Generator(nn.Module):
    def __init__(self, width=GEN, depth=3):
        super().__init__()
        self.head = nn.Conv2d(3, width, 3, padding=1)
        self.body = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(depth))
        self.tail = nn.Conv2d(width, 48, 3, padding=1)

    def forward(self, x):
        h = self.head(x)
        for conv in self.body:
            h = h + F.gelu(conv(h))
        up = F.interpolate(x, scale_factor=4, mode="nearest")
        return up + F.pixel_shuffle(self.tail(h), 4)


class FeatureNet(nn.Module):
    """VGG-like trunk; the land-cover classifier it was taken from is kept fixed."""

    def __init__(self):
        super().__init__()
        stages, c = [], 3
        for width in FEATURE:
            stages.append(nn.ModuleList([nn.Conv2d(c, width, 3, padding=1),
                                         nn.Conv2d(width, width, 3, padding=1)]))
            c = width
        self.stages = nn.ModuleList(stages)

    def forward(self, x):
        maps = []
        for first, second in self.stages:
            x = F.relu(second(F.relu(first(x))))
            maps.append(x)
            x = F.max_pool2d(x, 2)
        return maps


class Objective(nn.Module):
    def __init__(self, generator, features, weight=0.1):
        super().__init__()
        self.generator, self.features, self.weight = generator, features, weight

    def forward(self, low, high):
        fake = self.generator(low)
        loss = F.l1_loss(fake, high)
        for a, b in zip(self.features(fake), self.features(high)):
            loss = loss + self.weight * F.l1_loss(a, b)
        return loss


def sync():
    if device.type == "cuda":
        torch.cuda.synchronize()


def main():
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    generator = Generator().to(device, DTYPE, memory_format=torch.channels_last)
    features = FeatureNet().to(device, DTYPE, memory_format=torch.channels_last).eval().requires_grad_(False)
    objective = torch.compile(Objective(generator, features))
    opt = torch.optim.Adam(generator.parameters(), lr=1e-4, fused=device.type == "cuda")

    high = torch.rand(4, BATCH, 3, 4 * LOW, 4 * LOW, device=device).to(DTYPE)
    low = torch.stack([F.avg_pool2d(h, 4) for h in high])
    half = STEPS // 2
    for i in range(STEPS):
        if i == half:
            sync()
            t0 = time.perf_counter()
        hr = high[i % 4].contiguous(memory_format=torch.channels_last)
        lr = low[i % 4].contiguous(memory_format=torch.channels_last)
        loss = objective(lr, hr)
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
    sync()
    elapsed = (time.perf_counter() - t0) / (STEPS - half)
    print(f"loss {loss.item():.4f}")
    print(f"step_ms={elapsed * 1e3:.3f}")


if __name__ == "__main__":
    main()
