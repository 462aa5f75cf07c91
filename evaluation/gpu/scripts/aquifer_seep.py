"""Explicit Richards solver for a vertical section of an unsaturated aquifer (van Genuchten soil).

Head h in metres (negative: suction), double precision since the conductivity spans many decades.
"""
import os
import time

import torch

device = "cuda"

NZ, NX = 4096, 4096
DX = 0.02
DT = 5.0e-5
STEPS = int(os.environ.get("STEPS", "6000"))
LOG = 1_000

# silt loam
ALPHA = 1.9
N_VG = 1.31
M_VG = 1.0 - 1.0 / N_VG
KSAT = 0.108
STORAGE = 0.05


def initial_head():
    z = torch.linspace(0.0, 1.0, NZ, dtype=torch.float64, device=device)[:, None]
    x = torch.linspace(0.0, 1.0, NX, dtype=torch.float64, device=device)[None, :]
    dry = -3.0 + 2.2 * z
    lens = 0.6 * torch.exp(-((x - 0.5) / 0.08) ** 2 - ((z - 0.35) / 0.05) ** 2)
    rough = 0.02 * torch.randn(NZ, NX, dtype=torch.float64, device=device)
    return (dry + lens + rough).clamp(max=-0.05)


def conductivity(h):
    """Mualem - van Genuchten relative conductivity times its saturated value."""
    se = (1.0 + (ALPHA * h.abs()) ** N_VG) ** (-M_VG)
    return KSAT * se.sqrt() * (1.0 - (1.0 - se ** (1.0 / M_VG)) ** M_VG) ** 2


def advance(h):
    """One explicit step of  C dh/dt = div(K grad(h)) - dK/dz  with fixed head on the rim."""
    k = conductivity(h)
    k_x = 0.5 * (k[:, 1:] + k[:, :-1])
    k_z = 0.5 * (k[1:] + k[:-1])
    q_x = -k_x * (h[:, 1:] - h[:, :-1]) / DX
    q_z = -k_z * ((h[1:] - h[:-1]) / DX - 1.0)
    div = (q_x[1:-1, 1:] - q_x[1:-1, :-1]) + (q_z[1:, 1:-1] - q_z[:-1, 1:-1])
    new = h.clone()
    new[1:-1, 1:-1] -= DT / (DX * STORAGE) * div
    return new


def water_table(h):
    """Depth index below which the mean suction is less than a metre."""
    wet = h.mean(dim=1) > -1.0
    return int(wet.to(torch.int32).argmax().item())


def main():
    torch.manual_seed(5)
    h = initial_head()
    step = torch.compile(advance)
    for _ in range(3):
        h = step(h)
    torch.cuda.synchronize()

    start = time.perf_counter()
    for n in range(1, STEPS + 1):
        h = step(h)
        if n % LOG == 0:
            torch.cuda.synchronize()
            ms = (time.perf_counter() - start) / n * 1e3
            print(f"t = {n * DT:7.3f} d   mean head {h.mean().item():+.5f} m   "
                  f"table at row {water_table(h)}   {ms:.2f} ms/step")
    torch.cuda.synchronize()
    if not torch.isfinite(h).all():
        raise RuntimeError("solution blew up, reduce DT")
    print("done")


if __name__ == "__main__":
    with torch.no_grad():
        main()
