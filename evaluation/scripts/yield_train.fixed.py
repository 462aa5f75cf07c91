"""Yield regression from satellite index series (temporal gating network)."""
import os
import time
from dataclasses import dataclass

import torch
import torch.nn as nn


@dataclass
class TrainConfig:
    batch: int = 48
    bands: int = 10
    width: int = 32
    blocks: int = 3
    lr: float = 2e-3
    compile: bool = True
    multi_length: bool = True
    lengths: tuple = (64, 96)


class GateBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.lift = nn.Linear(width, 2 * width)
        self.alpha = nn.Parameter(torch.full((width,), 0.5))
        self.shift = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        a, b = self.lift(x).chunk(2, -1)
        a = a * torch.sigmoid(1.7 * a) + self.shift
        b = torch.tanh(b) * torch.exp(-0.5 * (b - self.shift).square())
        y = x + self.alpha * a * b
        scale = (y.square().mean(-1, keepdim=True) + 1e-5).rsqrt()
        return y * scale


class YieldNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.inp = nn.Linear(cfg.bands, cfg.width)
        self.blocks = nn.ModuleList(GateBlock(cfg.width) for _ in range(cfg.blocks))
        self.head = nn.Linear(cfg.width, 1)

    def forward(self, x):
        h = self.inp(x)
        for block in self.blocks:
            h = block(h)
        return self.head(h.mean(1)).squeeze(-1)


class FieldData:
    def __init__(self, cfg, seed=6):
        self.cfg = cfg
        self.gen = torch.Generator().manual_seed(seed)
        self.weight = torch.randn(cfg.bands, generator=self.gen)

    def batch(self, step):
        cfg = self.cfg
        pick = (step // 5) % len(cfg.lengths) if cfg.multi_length else 0
        x = torch.randn(cfg.batch, cfg.lengths[pick], cfg.bands, generator=self.gen)
        x = x + torch.randn(cfg.batch, 1, cfg.bands, generator=self.gen)
        return x, torch.tanh(x.mean(1) @ self.weight)


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.net = YieldNet(cfg)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=cfg.lr, momentum=0.9)
        self.model = self.net
        if cfg.compile:
            self.model = torch.compile(self.net, dynamic=False)

    def step(self, x, y):
        loss = nn.functional.huber_loss(self.model(x), y)
        loss.backward()
        self.opt.step()
        self.opt.zero_grad()
        return loss.detach()


def main():
    torch.manual_seed(9)
    torch.set_num_threads(1)
    cfg = TrainConfig()
    data, trainer = FieldData(cfg), Trainer(cfg)

    times, losses = [], []
    for step in range(int(os.environ.get("STEPS", "240"))):
        x, y = data.batch(step)
        t0 = time.perf_counter()
        losses.append(trainer.step(x, y))
        times.append(time.perf_counter() - t0)

    times = sorted(times[len(times) // 2:])
    print(f"huber {torch.stack(losses[-20:]).mean():.5f}")
    print(f"median step {times[len(times) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
