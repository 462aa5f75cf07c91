"""Fundus-photograph grading: images are decoded once into a page-locked uint8 pool, then trained over."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
CUDA = device.type == "cuda"

POOL, BATCH, SIDE = (32, 4, 64) if SMALL else (768, 48, 256)
WIDTHS = (16, 24) if SMALL else (32, 64, 128)
GRADES = 5


class Stage(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.reduce = nn.Conv2d(cin, cout, 3, stride=2, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(cout)
        self.mix = nn.Conv2d(cout, cout, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(cout)

    def forward(self, x):
        x = F.silu(self.norm1(self.reduce(x)))
        return x + F.silu(self.norm2(self.mix(x)))


class Grader(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.41, 0.22, 0.08]).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor([0.28, 0.15, 0.08]).view(1, 3, 1, 1))
        self.stem = nn.Conv2d(3, WIDTHS[0], 8, stride=4, padding=2)
        self.stages = nn.Sequential(*(Stage(a, b) for a, b in zip(WIDTHS, WIDTHS[1:])))
        self.head = nn.Linear(WIDTHS[-1], GRADES - 1)

    def forward(self, images, grade):
        x = (images / 255.0 - self.mean) / self.std
        with torch.autocast(device.type, torch.bfloat16, enabled=CUDA):
            x = self.stages(F.silu(self.stem(x.contiguous(memory_format=torch.channels_last))))
            logits = self.head(x.mean(dim=(2, 3)))
        ordinal = (grade[:, None] > torch.arange(GRADES - 1, device=grade.device)).float()
        return F.binary_cross_entropy_with_logits(logits.float(), ordinal)


class Pool:
    def __init__(self):
        g = torch.Generator().manual_seed(2)
        self.images = torch.randint(0, 256, (POOL, 3, SIDE, SIDE), dtype=torch.uint8, generator=g)
        self.grades = torch.randint(0, GRADES, (POOL,), generator=g)
        if CUDA:
            self.images, self.grades = self.images.pin_memory(), self.grades.pin_memory()

    def batch(self, i):
        at = (i * BATCH) % POOL
        images = self.images[at:at + BATCH].to(device, non_blocking=True)
        grades = self.grades[at:at + BATCH].to(device, non_blocking=True)
        return images, grades


def sync():
    if CUDA:
        torch.cuda.synchronize()


def main():
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    model = Grader().to(device, memory_format=torch.channels_last)
    net = torch.compile(model)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=CUDA)
    pool = Pool()
    running = torch.zeros((), device=device)
    half = STEPS // 2
    for i in range(STEPS):
        if i == half:
            sync()
            t0 = time.perf_counter()
        images, grades = pool.batch(i)
        loss = net(images, grades)
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        running.lerp_(loss.detach(), 0.05)
    sync()
    elapsed = (time.perf_counter() - t0) / (STEPS - half)
    print(f"running loss {running.item():.4f}")
    print(f"step_ms={elapsed * 1e3:.3f}")


if __name__ == "__main__":
    main()
