"""Complex Ginzburg-Landau equation on a periodic square: defect turbulence, integrated with
a two-stage Runge-Kutta scheme; counts phase defects as the pattern develops."""
import math
import os
import statistics
import time

import torch

N = 208
DT = 0.02
DX = 0.8
ALPHA, BETA = 2.0, -1.0


def laplacian(a):
    total = -4.0 * a
    for dim in (0, 1):
        total = total + torch.roll(a, 1, dim) + torch.roll(a, -1, dim)
    return total / (DX * DX)


def rate(u, v, gain):
    lu, lv = laplacian(u), laplacian(v)
    m = u ** 2 + v ** 2
    du = gain * u + lu - ALPHA * lv - m * (u - BETA * v)
    dv = gain * v + lv + ALPHA * lu - m * (v + BETA * u)
    return du, dv


@torch.compile
def advance(u, v, gain):
    ku, kv = rate(u, v, gain)
    ku, kv = rate(u + 0.5 * DT * ku, v + 0.5 * DT * kv, gain)
    return u + DT * ku, v + DT * kv


def phase_defects(phase):
    def wrap(d):
        return torch.remainder(d + math.pi, 2 * math.pi) - math.pi

    right = wrap(torch.roll(phase, -1, 1) - phase)
    down = wrap(torch.roll(phase, -1, 0) - phase)
    curl = right + torch.roll(down, -1, 1) - torch.roll(right, -1, 0) - down
    return int((curl.abs() > math.pi).sum())


def initial(gen):
    re = torch.randn(N, N, generator=gen)
    im = torch.randn(N, N, generator=gen)
    return 0.1 * torch.complex(re, im)


def main():
    steps = int(os.environ.get("STEPS", "240"))
    torch.set_num_threads(1)
    gen = torch.Generator().manual_seed(77)

    u, v = (q.contiguous() for q in (lambda z: (z.real, z.imag))(initial(gen)))
    yy = torch.linspace(-1, 1, N).unsqueeze(1)
    gain = (1.0 - 0.2 * yy * yy).expand(N, N).contiguous()

    defects, times = [], []
    with torch.no_grad():
        for step in range(steps):
            t0 = time.perf_counter()
            u, v = advance(u, v, gain)
            times.append(time.perf_counter() - t0)
            if step % 40 == 39:
                defects.append(phase_defects(torch.atan2(v, u)))

    print("defects:", " ".join(str(d) for d in defects))
    print(f"mean amplitude {torch.hypot(u, v).mean().item():.4f}, "
          f"{1e3 * statistics.median(times[steps // 2:]):.3f} ms/step")


if __name__ == "__main__":
    main()
