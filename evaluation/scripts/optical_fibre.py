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


def slope(field):
    power = field.real ** 2 + field.imag ** 2
    twist = torch.exp(1j * FIBRE.raman * power)
    return FIBRE.gain * field * twist + 1j * FIBRE.kerr * power * field / (1.0 + power)


@torch.compile
def advance(field):
    dz = FIBRE.dz
    k1 = slope(field)
    k2 = slope(field + 0.5 * dz * k1)
    k3 = slope(field + 0.5 * dz * k2)
    k4 = slope(field + dz * k3)
    return field + dz / 6.0 * (k1 + 2 * k2 + 2 * k3 + k4)


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
