# Oregonator-like reaction in many independent stirred cells; every substep is kept for plotting.
import os
import sys
import time

import numpy as np
import torch

torch.set_num_threads(1)

CELLS = 16384
SUBSTEPS = 48
STEPS = int(os.environ.get("STEPS", "3000"))


def rates(u, w, f, q, eps):
    react = u * (1.0 - u) - f * w * (u - q) / (u + q)
    return react / eps, u - w


def window(u, w, f, q, eps, dt):
    """Advance SUBSTEPS explicit steps and return the history of u."""
    history = torch.zeros(SUBSTEPS, CELLS)
    for n in range(SUBSTEPS):
        du, dw = rates(u, w, f, q, eps)
        u = (u + dt * du).clamp(1e-4, 1.0)
        w = w + dt * dw
        history[n] = u
    return u, w, history


def cell_setup(seed):
    rng = np.random.default_rng(seed)
    u = torch.from_numpy(rng.uniform(0.01, 0.6, CELLS).astype(np.float32))
    w = torch.from_numpy(rng.uniform(0.01, 0.2, CELLS).astype(np.float32))
    f = torch.from_numpy(rng.uniform(1.2, 2.2, CELLS).astype(np.float32))
    return u, w, f


def dominant_period(signal, dt):
    s = signal - signal.mean()
    spec = np.abs(np.fft.rfft(s))
    k = int(spec[1:].argmax()) + 1
    return len(s) * dt / k


def main(seed=11):
    q, eps, dt = 0.002, 0.05, 0.002
    u, w, f = cell_setup(seed)
    integrate = torch.compile(window)
    probe = []

    with torch.no_grad():
        for _ in range(2):
            integrate(u, w, f, q, eps, dt)
        clock = []
        for k in range(STEPS):
            t0 = time.perf_counter()
            u, w, hist = integrate(u, w, f, q, eps, dt)
            clock.append(time.perf_counter() - t0)
            probe.append(hist[::8, 0].clone())
            if k % 1000 == 0:
                print(f"window {k}: mean u {u.mean():.4f} spread {u.std():.4f}")

    trace = torch.cat(probe).numpy()
    print("cell 0 period about %.2f" % dominant_period(trace, dt * 8))
    print("median step %.3f ms" % (np.median(clock) * 1e3))


if __name__ == "__main__":
    main(*(int(a) for a in sys.argv[1:2]))
