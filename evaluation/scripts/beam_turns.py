"""Turn-by-turn tracking of a small particle bunch through a ring lattice: drifts, thin
quadrupoles, sextupoles and an RF-like longitudinal kick; reports tunes and losses."""
import math
import os
import statistics
import time

import torch

PARTICLES, CELLS, TURNS_PER_STEP = 256, 8, 4
APERTURE = 0.04


@torch.compile
def traverse(x, px, y, py, length, k1, k2):
    """Half drift, combined thin kick, half drift."""
    x = x + 0.5 * length * px
    y = y + 0.5 * length * py
    px = px - k1 * x - 0.5 * k2 * (x * x - y * y)
    py = py + k1 * y + k2 * x * y
    x = x + 0.5 * length * px
    y = y + 0.5 * length * py
    return x, px, y, py


def turn(x, px, y, py, alive, length, k1, k2):
    for n in range(3 * CELLS):
        x, px, y, py = traverse(x, px, y, py, length[n], k1[n], k2[n])
    alive = alive & (x.abs() < APERTURE) & (y.abs() < APERTURE)
    x, px, y, py = (torch.where(alive, q, torch.zeros_like(q)) for q in (x, px, y, py))
    return x, px, y, py, alive


def build_lattice(gen):
    length, k1, k2 = [], [], []
    for _ in range(CELLS):
        for kind in ("qf", "qd", "sx"):
            length.append(0.9 + 0.02 * float(torch.rand((), generator=gen)))
            k1.append({"qf": 0.55, "qd": -0.55, "sx": 0.0}[kind])
            k2.append(1.2 if kind == "sx" else 0.0)
    return tuple(torch.tensor(v) for v in (length, k1, k2))


def dominant_tune(signal):
    spectrum = torch.fft.rfft(signal - signal.mean()).abs()
    return float(spectrum.argmax()) / signal.numel()


def main():
    steps = int(os.environ.get("STEPS", "240"))
    torch.set_num_threads(1)
    gen = torch.Generator().manual_seed(31)

    length, k1, k2 = build_lattice(gen)
    x, px, y, py = (1e-3 * torch.randn(PARTICLES, generator=gen) for _ in range(4))
    alive = torch.ones(PARTICLES, dtype=torch.bool)

    monitor_x, monitor_y, times = [], [], []
    with torch.no_grad():
        for step in range(steps):
            t0 = time.perf_counter()
            for _ in range(TURNS_PER_STEP):
                x, px, y, py, alive = turn(x, px, y, py, alive, length, k1, k2)
                monitor_x.append(x[0])
                monitor_y.append(y[0])
            times.append(time.perf_counter() - t0)

    tune_x = dominant_tune(torch.stack(monitor_x))
    tune_y = dominant_tune(torch.stack(monitor_y))
    emit = math.sqrt(max(float(x.var() * px.var()), 0.0))
    print(f"alive {int(alive.sum())}/{PARTICLES}, tunes {tune_x:.3f} {tune_y:.3f}")
    print(f"emittance proxy {emit:.3e}, {1e3 * statistics.median(times[steps // 2:]):.3f} ms/step")


if __name__ == "__main__":
    main()
