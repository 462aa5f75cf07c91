"""Pedestrian-density forecaster for a railway concourse: trains on simulated counts."""
import os
import time
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

torch.set_num_threads(1)


@dataclass
class Config:
    zones: int = 96
    width: int = 128
    depth: int = 5
    batch: int = 256
    steps: int = int(os.environ.get("STEPS", "3500"))
    lr: float = 2e-3
    seed: int = 5


class GatedMix(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width))
        self.gate = nn.Parameter(torch.randn(width) * 0.1)
        self.lin = nn.Linear(width, width)

    def forward(self, x):
        mu = x.mean(-1, keepdim=True)
        sd = (x - mu).pow(2).mean(-1, keepdim=True).add(1e-5).sqrt()
        y = (x - mu) / sd * self.scale + self.shift
        g = torch.sigmoid(y * self.gate) * (1 + 0.1 * torch.tanh(y))
        z = self.lin(y) * g
        return x + F.softplus(z) - 0.7 * torch.exp(-z * z)


class Forecaster(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.embed = nn.Linear(cfg.zones, cfg.width)
        self.blocks = nn.ModuleList(GatedMix(cfg.width) for _ in range(cfg.depth))
        self.head = nn.Linear(cfg.width, cfg.zones)

    def forward(self, counts):
        h = torch.log1p(counts)
        h = self.embed(h)
        for block in self.blocks:
            h = block(h)
        return F.softplus(self.head(h))


def poisson_loss(rate, target):
    return (rate - target * torch.log(rate + 1e-6)).mean()


def report_cost(net, sample):
    with FlopCounterMode(display=False) as counter:
        net(sample)
    total = counter.get_total_flops()
    print(f"forward cost: {total / 1e6:.1f} MFLOP for {sample.shape[0]} snapshots")
    return total


def simulate(cfg: Config, n: int = 40):
    g = torch.Generator().manual_seed(cfg.seed)
    for _ in range(n):
        base = torch.rand(cfg.batch, cfg.zones, generator=g) * 6
        yield torch.poisson(base, generator=g), torch.poisson(base.roll(1, dims=1), generator=g)


def main():
    cfg = Config()
    torch.manual_seed(cfg.seed)
    data = list(simulate(cfg))

    model = Forecaster(cfg)
    net = torch.compile(model)
    report_cost(net, data[0][0])

    opt = torch.optim.SGD(model.parameters(), lr=cfg.lr, momentum=0.9)

    def train_step(x, y):
        opt.zero_grad(set_to_none=True)
        loss = poisson_loss(net(x), y)
        loss.backward()
        opt.step()
        return loss.detach()

    for x, y in data[:5]:
        train_step(x, y)

    start = time.perf_counter()
    seen = []
    for it in range(cfg.steps):
        x, y = data[it % len(data)]
        seen.append(train_step(x, y))
        if (it + 1) % 1000 == 0:
            print(f"step {it + 1}: loss {torch.stack(seen[-1000:]).mean().item():.4f}")
    took = time.perf_counter() - start
    print(f"{took / cfg.steps * 1e3:.2f} ms/step")


if __name__ == "__main__":
    main()
