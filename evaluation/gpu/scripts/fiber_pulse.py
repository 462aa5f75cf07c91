"""Propagate polarised pulses down a birefringent fibre (coupled nonlinear Schroedinger equations).

One step is one symmetric split step for a batch of launch conditions; both polarisations see
self- and cross-phase modulation, saturable gain and two-photon absorption.
"""
import os
import time

import torch

SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

LAUNCHES, SAMPLES = (8, 256) if SMALL else (2048, 4096)
DZ, GAMMA, XPM, TPA, GAIN, ESAT = 1e-3, 1.3, 2.0 / 3.0, 0.015, 0.4, 40.0


def kerr(a, b):
    pa = a.real**2 + a.imag**2
    pb = b.real**2 + b.imag**2
    gain = GAIN / (1.0 + (pa + pb).mean(-1, keepdim=True) / ESAT)
    ga = DZ * (gain - TPA * (pa + 2.0 * pb))
    gb = DZ * (gain - TPA * (pb + 2.0 * pa))
    fa = DZ * GAMMA * (pa + XPM * pb)
    fb = DZ * GAMMA * (pb + XPM * pa)
    a = a * torch.exp(ga + 1j * fa)
    b = b * torch.exp(gb + 1j * fb)
    mix = 0.02 * DZ
    return a + 1j * mix * b, b + 1j * mix * a


@torch.compile
def split_step(a, b, disp_a, disp_b):
    a = torch.fft.ifft(torch.fft.fft(a) * disp_a)
    b = torch.fft.ifft(torch.fft.fft(b) * disp_b)
    return kerr(a, b)


def main():
    torch.manual_seed(0)
    t = torch.linspace(-20.0, 20.0, SAMPLES, device=device)
    w = 2 * torch.pi * torch.fft.fftfreq(SAMPLES, d=40.0 / SAMPLES).to(device)
    width = 0.8 + 0.4 * torch.rand(LAUNCHES, 1, device=device)
    angle = torch.rand(LAUNCHES, 1, device=device) * torch.pi / 2
    pulse = 1.0 / torch.cosh(t / width)
    a = (pulse * torch.cos(angle)).to(torch.complex64)
    b = (pulse * torch.sin(angle)).to(torch.complex64)
    disp_a = torch.exp(1j * DZ * (0.5 * w**2 + 0.3 * w)).to(torch.complex64)
    disp_b = torch.exp(1j * DZ * (0.5 * w**2 - 0.3 * w)).to(torch.complex64)
    mark = STEPS // 2
    with torch.no_grad():
        for step in range(STEPS):
            if step == mark:
                if device.type == "cuda":
                    torch.cuda.synchronize()
                t0 = time.perf_counter()
            a, b = split_step(a, b, disp_a, disp_b)
    if device.type == "cuda":
        torch.cuda.synchronize()
    dt = (time.perf_counter() - t0) / (STEPS - mark)
    energy = (a.abs() ** 2 + b.abs() ** 2).mean().item()
    print(f"mean energy {energy:.5f}")
    print(f"step_ms={dt * 1e3:.3f}")


if __name__ == "__main__":
    main()
