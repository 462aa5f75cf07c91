"""Sectional aerosol box model on a regional grid: activation, growth, coagulation, loss."""
import os
import time

import torch

small = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = int(os.environ.get("STEPS", 16000))
SHAPE = (8, 32, 32) if small else (64, 512, 512)
DT = 2.0


@torch.compile
def microphysics(number, mass, vapour, temperature, updraft):
    es = 611.2 * torch.exp(17.67 * (temperature - 273.15) / (temperature - 29.65))
    supersat = vapour / (0.622 * es / 9.0e4) - 1.0
    kelvin = 3.3e-1 / temperature
    radius = (mass / (number + 1.0)).clamp_min(1e-6) ** (1.0 / 3.0)
    critical = kelvin / (radius + 1e-3)
    activation = torch.sigmoid(40.0 * (supersat - critical)) * number
    diffusivity = 2.1e-2 * (temperature / 273.15) ** 1.94
    ventilation = 1.0 + 0.3 * torch.sqrt(radius * updraft.abs())
    condensation = diffusivity * radius * ventilation * supersat.clamp(-0.2, 0.2) * number * 1e-3
    kernel = 1e-5 * (1.0 + radius) ** 2 * torch.sqrt(temperature / 273.15)
    coagulation = kernel * number * number
    fall = 0.3 * radius ** 2 / (1.0 + 2.0 * radius)
    deposition = fall * number * 1e-2
    nucleation = 4.0 * torch.exp(-((supersat - 0.1) / 0.2) ** 2)
    latent = 2.5e-3 * condensation
    new_number = (number + DT * (nucleation - coagulation - deposition)).clamp(0.0, 5e3)
    new_mass = (mass + DT * (condensation - fall * mass * 1e-2)).clamp(0.0, 5e3)
    new_vapour = (vapour - 1e-6 * DT * condensation).clamp_min(1e-5)
    rates = {"supersaturation": supersat, "critical": critical, "radius": radius, "activation": activation,
             "diffusivity": diffusivity, "ventilation": ventilation, "condensation": condensation,
             "kernel": kernel, "coagulation": coagulation, "fall_speed": fall, "deposition": deposition,
             "nucleation": nucleation, "latent_heating": latent}
    return new_number, new_mass, new_vapour, rates


@torch.no_grad()
def main():
    torch.manual_seed(17)
    number = torch.rand(SHAPE, device=device) * 800
    mass = torch.rand(SHAPE, device=device) * 50
    temperature = 280.0 + 8.0 * torch.randn(SHAPE, device=device)
    vapour = 0.008 + 0.002 * torch.rand(SHAPE, device=device)
    updraft = torch.randn(SHAPE, device=device)
    began = time.perf_counter()
    for step in range(STEPS):
        number, mass, vapour, rates = microphysics(number, mass, vapour, temperature, updraft)
        if step % 2000 == 0:
            summary = {name: round(rate.mean().item(), 5) for name, rate in rates.items()}
            print(f"t {step * DT:8.0f} s number {number.mean().item():.1f} {summary} "
                  f"({time.perf_counter() - began:.1f} s)")


if __name__ == "__main__":
    main()
