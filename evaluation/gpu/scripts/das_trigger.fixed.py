"""Sliding STA/LTA + kurtosis event trigger over a fibre-optic (DAS) strain-rate record."""
import os
import time

import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))

CHANNELS = 16 if SMALL else 512
SAMPLES = 20_000 if SMALL else 400_000
WINDOW = 2048 if SMALL else 8192
STA = 256
HOP = 125


def make_record():
    gen = torch.Generator(device=device).manual_seed(11)
    record = torch.randn(CHANNELS, SAMPLES, device=device, generator=gen)
    drift = torch.linspace(-2.0, 2.0, SAMPLES, device=device)
    record.add_(drift)
    for k in range(12):
        onset = (k + 1) * SAMPLES // 14
        record[:, onset:onset + 400].mul_(6.0)
    return record


def characteristic(window, taper):
    x = window - window.mean(dim=1, keepdim=True)
    x = x * taper
    energy = x * x
    lta = energy.mean(dim=1)
    sta = energy[:, -STA:].mean(dim=1)
    fourth = (energy * energy).mean(dim=1)
    kurt = fourth / (lta * lta + 1e-9) - 3.0
    ratio = sta / (lta + 1e-9)
    return ratio, kurt


characteristic = torch.compile(characteristic)


def vote(ratio, kurt):
    return ((ratio > 2.5) | (kurt > 4.0)).float().mean()


def sync():
    if device.type == "cuda":
        torch.cuda.synchronize()


@torch.no_grad()
def main():
    record = make_record()
    taper = torch.hann_window(WINDOW, periodic=False, device=device).sqrt()
    votes = torch.zeros(STEPS, device=device)
    last_start = SAMPLES - WINDOW
    half = STEPS // 2
    t0 = None
    for step in range(STEPS):
        if step == half:
            sync()
            t0 = time.perf_counter()
        start = (step * HOP) % last_start
        window = record[:, start:start + WINDOW].contiguous()
        ratio, kurt = characteristic(window, taper)
        votes[step] = vote(ratio, kurt)
    sync()
    ms = (time.perf_counter() - t0) * 1e3 / (STEPS - half)
    picks = (votes > 0.5).sum().item()
    print(f"windows={STEPS} picks={picks} mean_vote={votes.mean().item():.4f}")
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()
