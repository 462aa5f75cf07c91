"""Linear-ish shallow water model on a periodic grid with bottom drag and eddy viscosity."""
import time

import numpy as np
import torch


class Diagnostics:
    def __init__(self):
        self.rows = []

    def record(self, step, state):
        h, u, v = state
        mass = h.sum().item()
        energy = 0.5 * (h * (u * u + v * v)).sum().item()
        if not np.isfinite(energy):
            raise FloatingPointError(f"blow-up at {step}")
        self.rows.append((step, mass, energy))


def ddx(f):
    return 0.5 * (torch.roll(f, -1, 1) - torch.roll(f, 1, 1))


def ddy(f):
    return 0.5 * (torch.roll(f, -1, 0) - torch.roll(f, 1, 0))


def lap(f):
    return (torch.roll(f, 1, 0) + torch.roll(f, -1, 0) + torch.roll(f, 1, 1)
            + torch.roll(f, -1, 1) - 4 * f)


def tendencies(h, u, v, g, fcor, nu, drag):
    speed = torch.sqrt(u * u + v * v + 1e-8)
    du = fcor * v - g * ddx(h) - u * ddx(u) - v * ddy(u) + nu * lap(u) - drag * speed * u
    dv = -fcor * u - g * ddy(h) - u * ddx(v) - v * ddy(v) + nu * lap(v) - drag * speed * v
    dh = -(ddx(h * u) + ddy(h * v)) + 0.1 * nu * lap(h)
    return dh, du, dv


class Model:
    def __init__(self, n=384, dt=0.02):
        yy, xx = np.mgrid[0:n, 0:n] / n
        bump = np.exp(-80 * ((xx - 0.5) ** 2 + (yy - 0.4) ** 2))
        self.h = torch.as_tensor(1.0 + 0.1 * bump, dtype=torch.float32)
        self.u = torch.zeros(n, n)
        self.v = torch.zeros(n, n)
        self.dt = dt
        self.params = dict(g=1.0, fcor=0.1, nu=0.05, drag=1e-3)
        self.count = 0

    @torch.compile
    def integrate(self, h, u, v):
        k = tendencies(h, u, v, **self.params)
        hm, um, vm = (s + 0.5 * self.dt * d for s, d in zip((h, u, v), k))
        k = tendencies(hm, um, vm, **self.params)
        return tuple(s + self.dt * d for s, d in zip((h, u, v), k))

    def step(self):
        self.h, self.u, self.v = self.integrate(self.h, self.u, self.v)
        self.count += 1


def main():
    model, diag = Model(), Diagnostics()
    with torch.no_grad():
        for _ in range(3):
            model.step()
        spans = []
        for n in range(200):
            t0 = time.perf_counter()
            model.step()
            if n % 50 == 0:
                diag.record(n, (model.h, model.u, model.v))
            spans.append(time.perf_counter() - t0)
    for row in diag.rows:
        print("step %4d mass %.2f energy %.5f" % row)
    print(f"{np.median(spans) * 1e3:.2f} ms per step")


if __name__ == "__main__":
    main()
