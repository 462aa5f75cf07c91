"""Drift of detached kelp rafts off a headland: each raft feels current, Stokes drift, windage and its neighbours."""
import math
import os

import torch

RAFTS = 6000
DT = 300.0


def tidal_stream(x, y, age, t):
    phase = 2 * math.pi * t / 44714.0
    u = 0.45 * torch.cos(phase - x * 4e-5) * torch.exp(-((y / 9000.0) ** 2))
    v = 0.12 * torch.sin(phase + y * 3e-5) * torch.tanh(x / 15000.0)
    return u, v


def headland_eddy(x, y, age, t):
    rx, ry = x - 4000.0, y - 2500.0
    r2 = rx * rx + ry * ry + 4.0e5
    swirl = 900.0 * (1 - torch.exp(-r2 / 6.0e6)) / r2
    return -swirl * ry, swirl * rx


def stokes_drift(x, y, age, t):
    decay = torch.exp(-0.15 * (1 + age / 86400.0))
    k = 0.04 + 0.01 * torch.sin(x * 1e-4)
    us = 0.08 * decay * torch.sqrt(9.81 * k) * (1 + 0.2 * torch.cos(y * 2e-4))
    return us, -0.3 * us


def windage(x, y, age, t):
    sail = 0.012 / (1 + age / 172800.0)
    gust = 6.0 + 2.0 * torch.sin(x * 5e-5 + t * 1e-3)
    return sail * gust * torch.cos(y * 1e-5), sail * gust * torch.sin(x * 1e-5)


def shelf_spread(x, y, age, t):
    cx, cy = x - x.mean(), y - y.mean()
    r = torch.sqrt(cx * cx + cy * cy + 100.0)
    push = 0.02 * torch.exp(-r / 3000.0)
    return push * cx / r, push * cy / r


TERMS = {
    "tide": tidal_stream,
    "eddy": headland_eddy,
    "stokes": stokes_drift,
    "wind": windage,
    "spread": shelf_spread,
}
COMPILED = {name: torch.compile(term) for name, term in TERMS.items()}


def velocity(x, y, age, t):
    u, v = torch.zeros_like(x), torch.zeros_like(y)
    for name in TERMS:
        term = COMPILED[name]
        du, dv = term(x, y, age, t)
        u += du
        v += dv
    return u, v


def drift(x, y, age, t):
    """Classical fourth-order step."""
    half, full = torch.tensor(0.5 * DT), torch.tensor(DT)
    u1, v1 = velocity(x, y, age, t)
    u2, v2 = velocity(x + half * u1, y + half * v1, age, t + half)
    u3, v3 = velocity(x + half * u2, y + half * v2, age, t + half)
    u4, v4 = velocity(x + full * u3, y + full * v3, age, t + full)
    return x + full / 6 * (u1 + 2 * u2 + 2 * u3 + u4), y + full / 6 * (v1 + 2 * v2 + 2 * v3 + v4)


def main():
    steps = int(os.environ.get("STEPS", "240"))
    torch.manual_seed(31)
    x = 1000.0 * torch.randn(RAFTS)
    y = 1000.0 * torch.randn(RAFTS) + 1500.0
    age = 86400.0 * torch.rand(RAFTS)
    with torch.no_grad():
        for n in range(steps):
            t = torch.tensor(n * DT)
            x, y = drift(x, y, age, t)
            age += DT
            ashore = y < -4000.0
            y = torch.where(ashore, torch.full_like(y, -4000.0), y)
    print(f"after {steps * DT / 3600:.1f} h: centre ({x.mean() / 1e3:.2f}, {y.mean() / 1e3:.2f}) km, ashore {ashore.float().mean():.3f}")


if __name__ == "__main__":
    main()
