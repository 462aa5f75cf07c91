"""Pulses in an amplifying fibre: a split-step Fourier solver for many launch powers."""
import argparse
import math

import torch


def grid(points, span=40.0):
    t = (torch.arange(points) / points - 0.5) * span
    omega = 2 * math.pi * torch.fft.fftfreq(points, d=span / points)
    return t, omega


class Fibre:
    """beta: dispersion, gamma: Kerr, gain saturates with the local power."""

    def __init__(self, points, beta=-1.0, gamma=1.3, gain=0.05):
        self.t, omega = grid(points)
        self.half = torch.exp(0.25j * beta * omega.square() * self.dz)
        self.gamma, self.gain = gamma, gain
        self.advance = torch.compile(self.section)

    dz = 0.01

    def launch(self, powers):
        return torch.sqrt(powers)[:, None] / torch.cosh(self.t) + 0j

    def kerr(self, field):
        power = field.real.square() + field.imag.square()
        turn = torch.exp(1j * self.gamma * self.dz * power)
        raman = torch.exp(0.08j * self.dz * (power - power.roll(1, -1)))
        growth = torch.exp(self.dz * self.gain / (1 + power) * (1 + 0.1j))
        return field * turn * raman * growth

    def section(self, field):
        field = torch.fft.ifft(torch.fft.fft(field) * self.half)
        field = self.kerr(field)
        return torch.fft.ifft(torch.fft.fft(field) * self.half)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sections", type=int, default=12000)
    parser.add_argument("--points", type=int, default=2048)
    args = parser.parse_args()
    fibre = Fibre(args.points)
    with torch.inference_mode():
        field = fibre.launch(torch.linspace(0.2, 4.0, 48))
        for number in range(args.sections):
            field = fibre.advance(field)
            if number % 2000 == 0:
                print(number, f"peak {field.abs().max().item():.3f}")


if __name__ == "__main__":
    main()
