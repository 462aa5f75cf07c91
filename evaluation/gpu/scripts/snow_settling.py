"""Settling of a layered snowpack over a mountain range: layer thickness, density and
temperature advance together; two forecast domains take turns on the same device."""
import os
import time

import torch

dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
STEPS = int(os.environ.get("STEPS", "300"))
SMALL = os.environ.get("SMALL") == "1"

LAYERS = 16
COLUMNS = {"north": 3000 if SMALL else 4_000_000, "south": 2000 if SMALL else 3_000_000}
GRAVITY = torch.tensor(9.81, dtype=torch.float64, device=dev)
CONDUCT = torch.tensor(2.22, dtype=torch.float64, device=dev)


class Journal:
    def __init__(self):
        self.rows = []

    @torch.compiler.disable
    def note(self, name, value):
        self.rows.append((name, value))


def fresh(n, g):
    shape = (n, LAYERS)
    thick = (0.05 + 0.2 * torch.rand(shape, device=dev, generator=g)).t()
    rho = (90 + 60 * torch.rand(shape, device=dev, generator=g)).t()
    temp = (-12 + 10 * torch.rand(shape, device=dev, generator=g)).t()
    return thick, rho, temp


def settle(thick, rho, temp, weight, air, dt, name, journal):
    """One compaction and conduction step of every column."""
    eta = 3.6e6 * torch.exp(0.08 * -temp + 0.023 * rho) * (1.0 + rho / 917.0)
    load = GRAVITY * weight * rho * thick
    strain = torch.clamp(load / eta, max=0.05) * dt
    ripe = torch.sigmoid((temp + 0.5) * 6.0)
    strain = strain * (1.0 + 0.4 * ripe)
    new_thick = thick * torch.exp(-strain)
    new_rho = torch.clamp(rho * thick / new_thick, 50.0, 880.0)
    lam = CONDUCT * (new_rho / 917.0) ** 1.88
    heat = new_rho * (2090.0 + 7.8 * temp)
    relax = torch.tanh(lam * 600.0 * dt / (heat * new_thick * new_thick + 1.0))
    new_temp = temp + (air - temp) * relax
    new_temp = torch.minimum(new_temp, torch.zeros_like(new_temp))
    journal.note(name, dt)
    return new_thick, new_rho, new_temp


def main():
    g = torch.Generator(device=dev).manual_seed(9)
    state = {name: fresh(n, g) for name, n in COLUMNS.items()}
    weight = torch.linspace(1.0, 14.0, LAYERS, device=dev)[:, None]
    advance = torch.compile(settle, dynamic=True)
    journal = Journal()

    half, t0 = STEPS // 2, None
    with torch.no_grad():
        for k in range(STEPS):
            if k == half:
                if dev.type == "cuda":
                    torch.cuda.synchronize()
                t0 = time.perf_counter()
            name = "north" if k % 2 == 0 else "south"
            dt = 0.5 + 0.003 * (k % 37)
            air = -6.0 + 0.01 * (k % 24)
            state[name] = advance(*state[name], weight, air, dt, name, journal)
            if k % 50 == 49:
                print(f"{name} coldest {state[name][2].min().item():.2f}")
    if dev.type == "cuda":
        torch.cuda.synchronize()
    ms = (time.perf_counter() - t0) * 1e3 / (STEPS - half)
    for name, (thick, rho, temp) in state.items():
        print(f"{name} depth {thick.sum(0).mean().item():.3f} rho {rho.mean().item():.1f}")
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()
