"""Epoch folding of a long radio time series over a grid of trial spin frequencies."""
import os
import time

import torch

small = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = int(os.environ.get("STEPS", 3000))
SAMPLES = 200_000 if small else 32_000_000
BINS = 20
SPIN = 29.947


def observe():
    torch.manual_seed(31)
    clock = torch.arange(SAMPLES, device=device, dtype=torch.float32) * (40.0 / SAMPLES)
    power = torch.randn(SAMPLES, device=device)
    power += 0.05 * torch.exp(-(((clock * SPIN) % 1.0 - 0.4) / 0.03) ** 2)
    return clock, power


@torch.compile
def profile_of(clock, power, spin):
    bin_of = (torch.frac(clock * spin) * BINS).long()
    folded = torch.zeros(BINS, device=power.device).scatter_add(0, bin_of, power)
    folded = folded / (power.shape[0] / BINS)
    return folded, (folded - folded.mean()).square().sum()


@torch.no_grad()
def main():
    clock, power = observe()
    trials = SPIN + (torch.arange(STEPS, device=device) - STEPS // 2) * 2e-3
    strength = torch.zeros(STEPS, device=device)
    began = time.perf_counter()
    for step in range(STEPS):
        profile, chi = profile_of(clock, power, trials[step])
        strength[step] = chi
        if step % 300 == 0:
            print(f"trial {step:5d} chi {chi.item():.3e} ({time.perf_counter() - began:.1f} s)")
    print("best spin frequency", float(trials[strength.argmax()]))


if __name__ == "__main__":
    main()
