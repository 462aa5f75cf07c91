"""Joint forecaster for the feeders of a distribution grid.

One shared network predicts the next hour for every feeder; the operators look
at feeders by name, so the model hands out a mapping name -> forecast.
"""
import os
import time

import numpy as np
import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(0)

STEPS = int(os.environ.get("STEPS", "24000"))
FEEDERS = 240
HISTORY = 24
HORIZON = 4
WATCHED = 12


class FeederModel(nn.Module):
    def __init__(self, names: list[str], hidden: int = 32):
        super().__init__()
        self.names = names
        self.embed = nn.Parameter(0.1 * torch.randn(len(names), 8))
        self.enc = nn.Linear(HISTORY + 8, hidden)
        self.dec = nn.Linear(hidden, HORIZON)
        self.norm = nn.LayerNorm(hidden)

    def forward(self, history: torch.Tensor) -> dict[str, torch.Tensor]:
        x = torch.cat([history, self.embed], dim=1)
        h = torch.nn.functional.silu(self.norm(self.enc(x)))
        pred = history[:, -1:] + self.dec(h)
        return {name: pred[i] for i, name in enumerate(self.names)}


def load_curves(seed: int) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    t = np.arange(24 * 60)
    base = 1.0 + 0.4 * np.sin(2 * np.pi * t / 24.0)[None]
    phase = rng.uniform(0, 2 * np.pi, (FEEDERS, 1))
    weekly = 0.2 * np.sin(2 * np.pi * t / 168.0 + phase)
    noise = 0.05 * rng.standard_normal((FEEDERS, t.size))
    scale = rng.uniform(0.5, 2.0, (FEEDERS, 1))
    return torch.tensor(scale * (base + weekly + noise), dtype=torch.float32)


def main():
    names = [f"feeder_{i:03d}" for i in range(FEEDERS)]
    curves = load_curves(4)
    model = FeederModel(names)
    forecast = torch.compile(model)
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    rng = np.random.default_rng(9)
    avg = 0.0
    t0 = time.time()
    for step in range(STEPS):
        start = int(rng.integers(0, curves.shape[1] - HISTORY - HORIZON))
        past = curves[:, start : start + HISTORY]
        future = curves[:, start + HISTORY : start + HISTORY + HORIZON]
        out = forecast(past)
        picked = rng.choice(FEEDERS, WATCHED, replace=False)
        est = torch.stack([out[names[i]] for i in picked])
        ref = future[torch.from_numpy(picked)]
        loss = torch.nn.functional.smooth_l1_loss(est, ref)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 6000 == 0:
            print(f"{step:6d} loss {loss.item():.5f}")
    print(f"done, last loss {loss.item():.5f}, {time.time() - t0:.1f}s")


if __name__ == "__main__":
    main()
