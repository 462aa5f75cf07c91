"""Pulse propagation in a nonlinear fibre by a Runge-Kutta stepper."""
import argparse
from typing import NamedTuple

import torch


class Fibre(NamedTuple):
    gain: float = 0.02
    kerr: float = 1.3
    raman: float = 0.04
    dz: float = 1e-3


FIBRE = Fibre()


def slope(re, im):
    power = re ** 2 + im ** 2
    c, s = torch.cos(FIBRE.raman * power), torch.sin(FIBRE.raman * power)
    k = FIBRE.kerr * power / (1.0 + power)
    return FIBRE.gain * (re * c - im * s) - k * im, FIBRE.gain * (re * s + im * c) + k * re


def advance_real(re, im):
    dz = FIBRE.dz
    k1 = slope(re, im)
    k2 = slope(re + 0.5 * dz * k1[0], im + 0.5 * dz * k1[1])
    k3 = slope(re + 0.5 * dz * k2[0], im + 0.5 * dz * k2[1])
    k4 = slope(re + dz * k3[0], im + dz * k3[1])
    return tuple(f + dz / 6.0 * (a + 2 * b + 2 * c + d) for f, a, b, c, d in zip((re, im), k1, k2, k3, k4))


advance_c = torch.compile(advance_real)


def advance(field):
    v = torch.view_as_real(field)
    return torch.complex(*advance_c(v[..., 0].contiguous(), v[..., 1].contiguous()))


def pulses(channels, samples):
    t = torch.linspace(-8, 8, samples)
    width = torch.linspace(0.5, 2.0, channels)[:, None]
    envelope = 1.0 / torch.cosh(t / width)
    return torch.polar(envelope, 0.3 * t.expand_as(envelope).contiguous())


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=2800)
    args = ap.parse_args()
    torch.manual_seed(0)
    field = pulses(48, 1024)
    for step in range(args.steps):
        field = advance(field)
        if step % 200 == 0:
            print(f"z {step * FIBRE.dz:8.3f}  energy {field.abs().square().sum():.4f}")


if __name__ == "__main__":
    main()
