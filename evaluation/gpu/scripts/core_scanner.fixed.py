#!/usr/bin/env python3
"""Train a small U-Net that segments photographs of drill cores into rock units."""
import os
import time
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda"


@dataclass(frozen=True)
class Plan:
    batch: int = 8
    side: int = 384
    base: int = 32
    units: int = 9
    steps: int = int(os.environ.get("STEPS", "900"))
    lr: float = 3e-4


def double_conv(c_in, c_out):
    return nn.Sequential(
        nn.Conv2d(c_in, c_out, 3, padding=1, bias=False),
        nn.BatchNorm2d(c_out),
        nn.SiLU(),
        nn.Conv2d(c_out, c_out, 3, padding=1, bias=False),
        nn.BatchNorm2d(c_out),
        nn.SiLU(),
    )


class CoreNet(nn.Module):
    def __init__(self, base, units):
        super().__init__()
        widths = [base, 2 * base, 4 * base, 8 * base]
        self.down = nn.ModuleList()
        previous = 3
        for w in widths:
            self.down.append(double_conv(previous, w))
            previous = w
        self.lift = nn.ModuleList()
        self.up = nn.ModuleList()
        for w in reversed(widths[:-1]):
            self.lift.append(nn.ConvTranspose2d(previous, w, 2, stride=2))
            self.up.append(double_conv(2 * w, w))
            previous = w
        self.classify = nn.Conv2d(previous, units, 1)

    def forward(self, image):
        skips = []
        x = image
        for depth, stage in enumerate(self.down):
            if depth:
                x = F.max_pool2d(x, 2)
            x = stage(x)
            skips.append(x)
        skips.pop()
        for lift, stage in zip(self.lift, self.up):
            x = stage(torch.cat([lift(x), skips.pop()], dim=1))
        return self.classify(x)


class CoreBoxes:
    """Photographs and unit maps, resident on the card."""

    def __init__(self, plan, boxes=6):
        g = torch.Generator(device=device).manual_seed(77)
        shape = (boxes, plan.batch, 3, plan.side, plan.side)
        self.photos = torch.rand(shape, device=device, generator=g)
        bands = torch.linspace(0, plan.units - 1e-3, plan.side, device=device).long()
        self.maps = bands.expand(plan.batch, plan.side, plan.side).contiguous()
        self.photos += 0.1 * self.maps.float()[None, :, None]

    def __len__(self):
        return self.photos.shape[0]

    def __getitem__(self, i):
        return self.photos[i].contiguous(memory_format=torch.channels_last), self.maps


class Trainer:
    def __init__(self, plan):
        self.plan = plan
        self.net = CoreNet(plan.base, plan.units).to(device, memory_format=torch.channels_last)
        self.forward = torch.compile(self.net)
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=plan.lr, fused=True)
        self.running = torch.zeros((), device=device)

    def step(self, photo, unit_map):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            logits = self.forward(photo)
            loss = F.cross_entropy(logits, unit_map)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        self.running.lerp_(loss.detach(), 0.05)
        del logits, loss

    def train(self, boxes):
        began = None
        for step in range(self.plan.steps):
            if step == 10:
                torch.cuda.synchronize()
                began = time.perf_counter()
            self.step(*boxes[step % len(boxes)])
            if step % 150 == 149:
                print(f"step {step + 1:4d}  running loss {self.running.item():.4f}")
        torch.cuda.synchronize()
        return (time.perf_counter() - began) / (self.plan.steps - 10)


def main():
    torch.manual_seed(12)
    plan = Plan()
    seconds = Trainer(plan).train(CoreBoxes(plan))
    print(f"{1e3 * seconds:.2f} ms per step, {plan.batch / seconds:.0f} photos/s")


if __name__ == "__main__":
    main()
