"""Conserved phase-field relaxation of an alloy film on a periodic grid."""
import time

import numpy as np
import torch


class Film:
    def __init__(self, n=448, mean=0.45, seed=5):
        rng = np.random.default_rng(seed)
        c = mean + 0.05 * rng.standard_normal((n, n))
        self.c = torch.from_numpy(c.astype(np.float32)).clamp(0.02, 0.98)
        self.kappa = 0.02
        self.mobility = 0.01


def neighbours(f):
    return (torch.roll(f, 1, 0) + torch.roll(f, -1, 0)
            + torch.roll(f, 1, 1) + torch.roll(f, -1, 1) - 4.0 * f)


def potential(c):
    c = c.clamp(0.01, 0.99)
    elastic = torch.pow(c, 1.6) * torch.atan(2.0 * c)
    mixing = 0.3 * (2.0 * c - 1.0) + 0.1 * torch.tan(c - 0.5)
    return elastic + mixing


def update(c, mobility):
    mu = potential(c)
    return c + mobility * neighbours(mu)


potential = torch.compile(potential)
neighbours = torch.compile(neighbours)


class Recorder:
    def __init__(self, every):
        self.every = every
        self.lines = []

    def __call__(self, k, film):
        if k % self.every == 0:
            self.lines.append((k, film.c.mean().item(), film.c.std().item()))

    def dump(self):
        for k, m, s in self.lines:
            print(f"{k:5d}  mean {m:.5f}  contrast {s:.5f}")


def evolve(film, steps, recorder=None):
    walls = np.empty(steps)
    for k in range(steps):
        t0 = time.perf_counter()
        film.c = update(film.c, film.mobility)
        walls[k] = time.perf_counter() - t0
        if recorder is not None:
            recorder(k, film)
    return walls


@torch.no_grad()
def main():
    film = Film()
    evolve(film, 5)
    recorder = Recorder(60)
    walls = evolve(film, 300, recorder)
    recorder.dump()
    print(f"grid {tuple(film.c.shape)}: {np.median(walls) * 1e3:.2f} ms per update")


if __name__ == "__main__":
    main()
