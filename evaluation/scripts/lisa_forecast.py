"""Layerwise-sampled fine-tuning (LISA style) of a load forecaster."""
import os
import random
import time

import torch
import torch.nn.functional as F
from torch import nn

DEPTH, WIDTH, HISTORY, HORIZON = 4, 64, 96, 24
ACTIVE, PERIOD = 2, 10


class MixerBlock(nn.Module):
    def __init__(self, width, tokens):
        super().__init__()
        self.norm_t = nn.LayerNorm(width)
        self.time_mix = nn.Linear(tokens, tokens)
        self.norm_c = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        x = x + self.time_mix(self.norm_t(x).transpose(1, 2)).transpose(1, 2)
        return x + self.down(F.gelu(self.up(self.norm_c(x))))


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Linear(8, WIDTH)
        tokens = HISTORY // 8
        self.blocks = nn.ModuleList(MixerBlock(WIDTH, tokens) for _ in range(DEPTH))
        self.head = nn.Linear(tokens * WIDTH, HORIZON)

    def forward(self, x):
        level = x.mean(-1, keepdim=True)
        h = self.patch((x - level).unflatten(-1, (-1, 8)))
        for block in self.blocks:
            h = block(h)
        return self.head(h.flatten(1)) + level


class LayerSampler:
    """Every PERIOD steps, pick which blocks are trained; the others stay frozen."""

    def __init__(self, model, seed):
        self.blocks = list(model.blocks)
        self.rng = random.Random(seed)

    def __call__(self, step):
        if step % PERIOD:
            return
        chosen = set(self.rng.sample(range(len(self.blocks)), ACTIVE))
        for i, block in enumerate(self.blocks):
            block.requires_grad_(i in chosen)


def windows(gen, count, batch=24):
    t = torch.arange(HISTORY + HORIZON, dtype=torch.float32)
    for _ in range(count):
        phase = 24.0 * torch.rand(batch, 1, generator=gen)
        daily = torch.sin((t + phase) * (6.2832 / 24.0))
        weekly = 0.3 * torch.cos((t + phase) * (6.2832 / 168.0))
        y = daily + weekly + 0.05 * torch.randn(batch, t.numel(), generator=gen)
        yield y[:, :HISTORY].contiguous(), y[:, HISTORY:].contiguous()


def main():
    torch.manual_seed(0)
    steps = int(os.environ.get("STEPS", "240"))
    data = list(windows(torch.Generator().manual_seed(9), 20))
    model = Forecaster()
    forward = torch.compile(model)
    opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    sampler = LayerSampler(model, seed=4)

    started = time.perf_counter()
    times = []
    for step in range(steps):
        past, future = data[step % len(data)]
        sampler(step)
        t0 = time.perf_counter()
        loss = F.huber_loss(forward(past), future)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        times.append(time.perf_counter() - t0)

    tail = sorted(times[len(times) // 2:])
    print(f"loss {loss.item():.4f}  run {time.perf_counter() - started:.1f} s")
    print(f"median step {1e3 * tail[len(tail) // 2]:.2f} ms")


if __name__ == "__main__":
    main()
