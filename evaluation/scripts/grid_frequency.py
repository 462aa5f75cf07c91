"""Swing-equation surrogate for a power grid: measurement task, trainer task, compiled model and update."""
import os
import asyncio
import math
import threading
import time
from dataclasses import dataclass

import torch
from torch import nn

NODES, HISTORY, BATCH = 24, 20, 64
STEPS = int(os.environ.get("STEPS", "900"))


@dataclass
class Chunk:
    serial: int
    angle: torch.Tensor
    target: torch.Tensor


class Surrogate(nn.Module):
    def __init__(self, dim=40):
        super().__init__()
        self.inp = nn.Linear(HISTORY, dim)
        self.coupling = nn.Parameter(0.1 * torch.randn(NODES, NODES))
        self.update = nn.ModuleList(nn.Linear(dim, dim) for _ in range(3))
        self.out = nn.Linear(dim, 4)
        self.encode_clock = 0.0

    def forward(self, angle):
        t0 = time.perf_counter()
        h = torch.tanh(self.inp(angle))
        h = h * torch.sigmoid(h) + 0.1 * torch.sin(3.0 * h)
        self.encode_clock = t0
        for layer in self.update:
            diff = h[:, :, None] - h[:, None]
            pull = (torch.tanh(diff) * self.coupling[None, :, :, None]).mean(2)
            h = h + torch.tanh(layer(h)) * 0.5 - pull
        return self.out(h)


def simulate(gen):
    freq = 0.5 * torch.randn(BATCH, NODES, 1, generator=gen)
    phase = 2 * math.pi * torch.rand(BATCH, NODES, 1, generator=gen)
    t = torch.arange(HISTORY + 4) * 0.15
    common = torch.sin(0.7 * t + phase.mean(1, keepdim=True))
    series = torch.sin(freq * t + phase) + 0.4 * common
    return series[..., :HISTORY], series[..., HISTORY:]


class Trainer:
    def __init__(self):
        self.model = Surrogate()
        self.forward = torch.compile(self.model)
        self.opt = torch.optim.Adam(self.model.parameters(), lr=torch.tensor(2e-3))
        self.advance = torch.compile(self.opt.step)
        self.lock = threading.Lock()
        self.latest = (0, 0.0)

    def fit(self, chunk):
        loss = (self.forward(chunk.angle) - chunk.target).square().mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.param_groups[0]["lr"].fill_(2e-3 * 0.5 * (1 + math.cos(math.pi * chunk.serial / STEPS)))
        self.advance()
        with self.lock:
            self.latest = (chunk.serial, loss.item())


def watch(trainer, stop):
    seen = -1
    while not stop.wait(0.05):
        with trainer.lock:
            seen = max(seen, trainer.latest[0])
    return seen


async def measure(queue):
    gen = torch.Generator().manual_seed(81)
    bank = [simulate(gen) for _ in range(32)]
    for serial in range(STEPS):
        await queue.put(Chunk(serial, *bank[serial % len(bank)]))
    await queue.put(None)


async def train(queue, trainer):
    while (chunk := await queue.get()) is not None:
        trainer.fit(chunk)
        if chunk.serial % 45 == 0:
            print(f"chunk {chunk.serial:5d}  mse {trainer.latest[1]:.5f}")
        await asyncio.sleep(0)


async def main():
    torch.manual_seed(80)
    queue, trainer, stop = asyncio.Queue(8), Trainer(), threading.Event()
    observer = threading.Thread(target=watch, args=(trainer, stop), daemon=True)
    observer.start()
    await asyncio.gather(measure(queue), train(queue, trainer))
    stop.set()
    observer.join()


if __name__ == "__main__":
    asyncio.run(main())
