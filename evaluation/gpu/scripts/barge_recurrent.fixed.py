"""Forecast barge traffic with a wide minimal recurrent cell, one compiled cell per tick."""
import os

import numpy as np
import torch
from torch import nn

DEVICE = torch.device("cuda")
STEPS = int(os.environ.get("STEPS", "3000"))
LOCKS, STATE, BATCH, TICKS = 256, 8192, 16, 24


class CanalCell(nn.Module):
    def __init__(self):
        super().__init__()
        self.read = nn.Linear(LOCKS, 2 * STATE)
        self.keep = nn.Linear(STATE, 2 * STATE, bias=False)
        with torch.no_grad():
            self.keep.weight.mul_(0.5)

    def forward(self, tick, state):
        gate, fresh = (self.read(tick) + self.keep(state)).chunk(2, -1)
        gate = torch.sigmoid(gate)
        return gate * state + (1 - gate) * torch.tanh(fresh)


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = CanalCell()
        self.head = nn.Linear(STATE, LOCKS)

    def forward(self, ticks):
        state = ticks.new_zeros(ticks.shape[1], STATE)
        for tick in ticks:
            state = self.cell(tick, state)
        return self.head(state)


def synth(rng):
    phase = rng.uniform(0, 6.28, (1, BATCH, LOCKS))
    t = np.arange(TICKS)[:, None, None]
    return (np.sin(0.3 * t + phase) * 0.5).astype(np.float32)


@torch.no_grad()
def main():
    torch.manual_seed(2)
    rng = np.random.default_rng(4)
    model = Forecaster().to(DEVICE, torch.bfloat16).eval()
    windows = [torch.from_numpy(synth(rng)).to(DEVICE) for _ in range(8)]
    model.cell = torch.compile(model.cell)

    level = torch.zeros((), device=DEVICE)
    for step in range(STEPS):
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
            forecast = model(windows[step % len(windows)])
        level = 0.9 * level + 0.1 * forecast.float().abs().mean()
        if step % 200 == 199:
            print(f"step {step + 1} level {level.item():.5f}")
    print("level", round(level.item(), 5))


main()
