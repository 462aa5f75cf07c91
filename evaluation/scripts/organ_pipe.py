"""Two-dimensional air column of a flue pipe: staggered pressure / velocity march, mouth jet, microphone trace."""
import math
import os

import torch

NY, NX = 260, 720
OVERSAMPLE = 2
DX = 2.0e-3
C0, RHO = 343.0, 1.2
DT = 0.6 * DX / (C0 * math.sqrt(2.0))


def make_pipe():
    """Admittance of the velocity faces: zero on the wooden walls, one in the air."""
    gx = torch.ones(NY, NX + 1)
    gy = torch.ones(NY + 1, NX)
    for row in (80, 160):
        gy[row, 60:520] = 0.0
    gx[80:160, 60] = 0.0
    gy[80, 66:76] = 1.0
    return gx, gy


def sponge(width=24):
    ramp = torch.linspace(0.90, 1.0, width)
    line = torch.ones(NX)
    line[:width] = ramp
    line[-width:] = ramp.flip(0)
    return line


@torch.compile
def advance(p, vx, vy, gx, gy, line, jet):
    kv = DT / (RHO * DX)
    kp = RHO * C0 * C0 * DT / DX
    vx[:, 1:-1] -= kv * gx[:, 1:-1] * (p[:, 1:] - p[:, :-1])
    vy[1:-1, :] -= kv * gy[1:-1, :] * (p[1:, :] - p[:-1, :])
    p[1:-1, 1:-1] -= kp * (vx[1:-1, 2:-1] - vx[1:-1, 1:-2] + vy[2:-1, 1:-1] - vy[1:-2, 1:-1])
    p[76:84, 66:76] += jet
    p[:, :24] *= line[:24]
    p[:, -24:] *= line[-24:]
    return p[100, 110]


def jet_pressure(t, mic):
    blow = 40.0 * (1.0 - math.exp(-t / 2.0e-3))
    return blow * math.sin(2.0 * math.pi * 196.0 * t) - 0.02 * mic


def main():
    steps = int(os.environ.get("STEPS", "240"))
    torch.manual_seed(7)
    gx, gy = make_pipe()
    line = sponge()
    p = torch.zeros(NY, NX)
    vx = torch.zeros(NY, NX + 1)
    vy = torch.zeros(NY + 1, NX)
    jet = torch.zeros(())
    trace = torch.zeros(steps)
    mic = 0.0
    with torch.no_grad():
        for n in range(steps):
            jet.fill_(jet_pressure(n * OVERSAMPLE * DT, mic))
            for _ in range(OVERSAMPLE):
                pressure = advance(p, vx, vy, gx, gy, line, jet)
            mic = float(pressure)
            trace[n] = mic
    level = 20.0 * math.log10(trace.abs().max().item() / 2.0e-5 + 1e-12)
    print(f"{steps} samples of {OVERSAMPLE * DT * 1e6:.2f} us, peak level at the microphone {level:.1f} dB, rms {p.pow(2).mean().sqrt():.4f} Pa")


if __name__ == "__main__":
    main()
