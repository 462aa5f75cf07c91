"""Condition monitoring of a rolling bearing from a vibration sensor.

A reader thread decodes the packets of the acquisition card into frames, the
main thread trains an autoencoder on them and tracks the reconstruction error.
"""
import math
import os
import threading
from collections import deque

import numpy as np
import torch
import torch.nn as nn

FRAME = 512
BATCH = 96
DEPTH = 6


class PacketReader(threading.Thread):
    """Keeps a short backlog of decoded batches."""

    def __init__(self, seed: int = 17):
        super().__init__(daemon=True)
        rng = np.random.default_rng(seed)
        t = np.arange(FRAME * BATCH) / 20_000.0
        carrier = np.sin(2 * math.pi * 157.0 * t) + 0.4 * np.sin(2 * math.pi * 3200.0 * t)
        self.raw = [
            np.clip((carrier + 0.3 * rng.standard_normal(t.size)) * 8000, -32768, 32767).astype(np.int16)
            for _ in range(6)
        ]
        self.backlog = deque()
        self.lock = threading.Lock()
        self.running = True

    def decode(self, i: int) -> torch.Tensor:
        block = self.raw[i % len(self.raw)].astype(np.float32) / 32768.0
        return torch.from_numpy(block.reshape(BATCH, FRAME))

    def run(self):
        i = 0
        while self.running:
            with self.lock:
                room = len(self.backlog) < DEPTH
            if room:
                batch = self.decode(i)
                with self.lock:
                    self.backlog.append(batch)
                i += 1

    def next(self) -> torch.Tensor:
        while True:
            with self.lock:
                if self.backlog:
                    return self.backlog.popleft()


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(FRAME))
        self.edge = nn.Parameter(torch.tensor(0.1))
        self.gate = nn.Parameter(torch.full((FRAME,), 2.0))
        self.down = nn.Sequential(nn.Linear(FRAME, 192), nn.GELU(), nn.Linear(192, 24))
        self.up = nn.Sequential(nn.Linear(24, 192), nn.GELU(), nn.Linear(192, FRAME))

    def forward(self, frames):
        x = frames - frames.mean(-1, keepdim=True)
        x = x * self.window
        x = x / (x.square().mean(-1, keepdim=True).sqrt() + 1e-6)
        x = torch.sign(x) * torch.log1p(4.0 * x.abs()) / math.log(5.0)
        jump = torch.nn.functional.pad(x[:, 1:] - x[:, :-1], (0, 1))
        x = torch.tanh(x + self.edge * jump * torch.exp(-jump.square()))
        y = self.up(self.down(x))
        y = y * torch.sigmoid(self.gate * y.abs())
        err = (torch.nn.functional.huber_loss(y, x, reduction="none")).mean(-1)
        return err.mean(), err.detach()


def main():
    steps = int(os.environ.get("STEPS", "240"))
    torch.manual_seed(0)
    model = Autoencoder()
    compiled = torch.compile(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    reader = PacketReader()
    reader.start()

    level = torch.zeros(BATCH)
    for _ in range(steps):
        loss, err = compiled(reader.next())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        level = 0.95 * level + 0.05 * err

    reader.running = False
    reader.join(timeout=2.0)
    print(f"{steps} batches  error {loss.item():.5f}  alarm level {float(level.mean() + 3 * level.std()):.5f}")


if __name__ == "__main__":
    main()
