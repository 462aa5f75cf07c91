"""Drifting buoys in an ocean gyre: numpy-style physics traced by the compiler, float64 on purpose."""
import os

import numpy as np
import torch

STEPS = int(os.environ.get("STEPS", "12000"))
BUOYS = 40000
DT = 0.01


def stream(x, y, strength):
    sx, sy = np.sin(np.pi * x), np.sin(np.pi * y)
    cx, cy = np.cos(np.pi * x), np.cos(np.pi * y)
    return -strength * np.pi * sx * cy, strength * np.pi * cx * sy


@torch.compile
def drift(pos, strength, gust):
    x, y = pos[:, 0], pos[:, 1]
    u, v = stream(x, y, strength)
    u2, v2 = stream(x + 0.5 * DT * u, y + 0.5 * DT * v, strength)
    speed = np.sqrt(u2 * u2 + v2 * v2) + 1e-9
    drag = np.clip(1.0 / (1.0 + 0.1 * speed), 0.5, 1.0)
    x = x + DT * u2 * drag + gust[:, 0]
    y = y + DT * v2 * drag + gust[:, 1]
    out = np.stack([np.abs(x), np.abs(y)], axis=1)
    return np.where(out > 1.0, 2.0 - out, out)


class Census:
    """Share of buoys in each quarter; looks at numpy arrays outside the compiled part."""

    def __init__(self):
        self.rows = []

    def __call__(self, pos):
        q = (pos[:, 0] > 0.5).astype(np.int64) * 2 + (pos[:, 1] > 0.5)
        share = np.bincount(q, minlength=4) / len(pos)
        self.rows.append(share)
        return share


class Season:
    def __init__(self):
        self.phase = np.zeros(())

    def next(self):
        self.phase = self.phase + 0.003
        return np.asarray(0.1 + 0.05 * np.sin(self.phase))


def main():
    rng = np.random.default_rng(3)
    pos = rng.random((BUOYS, 2))
    gusts = [rng.normal(0, 1e-3, (BUOYS, 2)) for _ in range(5)]
    census, season = Census(), Season()
    every = max(1, STEPS // 20)
    for step in range(1, STEPS + 1):
        pos = drift(pos, season.next(), gusts[step % 5])
        if step % every == 0:
            share = census(pos)
            print(f"step {step}  quarters {np.round(share, 4).tolist()}  checks {len(census.rows)}")


if __name__ == "__main__":
    main()
