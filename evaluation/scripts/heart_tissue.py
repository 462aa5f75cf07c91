"""Mitchell-Schaeffer cardiac tissue: an ensemble of 2-D sheets with different restitution
parameters is stimulated by a fast train and the wave coverage of each sheet is recorded."""
import os
import time

import torch

torch.set_num_threads(1)

ROWS = COLS = 192
SHEETS = 8
DT = 0.1
DIFF = 0.12
V_GATE = 0.13
PACE_EVERY = 2600


def laplacian(v):
    """Five-point stencil with periodic edges."""
    return (v.roll(1, -1) + v.roll(-1, -1) + v.roll(1, -2) + v.roll(-1, -2)) - 4.0 * v


def reaction(v, h, tau):
    t_in, t_out, t_open, t_close = tau
    current = h * v * v * (1.0 - v) / t_in - v / t_out
    gate = torch.sigmoid((v - V_GATE) * 80.0)
    dh = (1.0 - gate) * (1.0 - h) / t_open - gate * h / t_close
    return current, dh


def advance(v, h, pulse, tau):
    for _ in range(2):
        current, dh = reaction(v, h, tau)
        v = v + DT * (DIFF * laplacian(v) + current + pulse)
        h = h + DT * dh
    v = v.clamp(-0.1, 1.2)
    h = h.clamp(0.0, 1.0)
    excited = torch.sigmoid((v - 0.5) * 30.0).mean(dim=(-1, -2))
    return v, h, excited


def ensemble_constants(gen):
    """One set of time constants for each sheet, broadcast over the grid."""
    def spread(mean, width):
        return (mean * (1.0 + width * (torch.rand(SHEETS, generator=gen) - 0.5))).view(-1, 1, 1)

    return spread(0.3, 0.2), spread(6.0, 0.2), spread(120.0, 0.4), spread(150.0, 0.4)


def stimulus():
    on = torch.zeros(1, ROWS, COLS)
    on[:, :, :6] = 0.4
    return on, torch.zeros_like(on)


class Recorder:
    def __init__(self, every):
        self.every = every
        self.rows = []

    def __call__(self, n, excited):
        if n % self.every == 0:
            self.rows.append(excited)

    def table(self):
        cover = torch.stack(self.rows)
        return cover.max(0).values, cover.mean(0)


@torch.no_grad()
def main():
    gen = torch.Generator().manual_seed(404)
    tau = ensemble_constants(gen)
    on, off = stimulus()
    v = torch.zeros(SHEETS, ROWS, COLS)
    h = torch.ones(SHEETS, ROWS, COLS) - 0.02 * torch.rand(SHEETS, ROWS, COLS, generator=gen)

    step = torch.compile(advance)
    for _ in range(5):
        v, h, _ = step(v, h, off, tau)

    steps = int(os.environ.get("STEPS", "18000"))
    record = Recorder(every=100)
    begin = time.perf_counter()
    for n in range(steps):
        pulse = on if n % PACE_EVERY < 20 else off
        v, h, excited = step(v, h, pulse, tau)
        record(n, excited)
    spent = time.perf_counter() - begin

    peak, mean = record.table()
    for s in range(SHEETS):
        print(f"sheet {s}: peak coverage {peak[s]:.3f}, mean {mean[s]:.3f}")
    print(f"{spent / steps * 1e3:.3f} ms/step")


if __name__ == "__main__":
    main()
