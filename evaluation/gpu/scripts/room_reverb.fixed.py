"""Offline reverb rendering: dry stems convolved with a bank of impulse responses in the frequency domain."""
import os
import time

import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))

STEMS = 4 if SMALL else 256
BLOCK = 2048 if SMALL else 57_600
TAIL = 300 if SMALL else 7_920
N_FFT = 1 << (BLOCK + TAIL - 2).bit_length()


def impulse_bank(gen):
    t = torch.arange(TAIL, device=device) / TAIL
    decay = torch.exp(-6.9 * t)
    ir = torch.randn(STEMS, TAIL, device=device, generator=gen) * decay
    ir[:, 0] = 1.0
    return ir / ir.norm(dim=1, keepdim=True)


@torch.compile
def render(dry, response, overlap, wet):
    spectrum = torch.fft.rfft(dry, n=N_FFT)
    full = torch.fft.irfft(spectrum * response, n=N_FFT)
    head = full[:, :BLOCK]
    tail = full[:, BLOCK:BLOCK + TAIL - 1]
    mixed = torch.cat([head[:, :TAIL - 1] + overlap, head[:, TAIL - 1:]], dim=1)
    out = wet * mixed
    peak = out.abs().amax(dim=1)
    return out, tail.clone(), peak


def sync():
    if device.type == "cuda":
        torch.cuda.synchronize()


@torch.no_grad()
def main():
    gen = torch.Generator(device=device).manual_seed(21)
    response = torch.fft.rfft(impulse_bank(gen), n=N_FFT)
    stems = torch.randn(3, STEMS, BLOCK, device=device, generator=gen) * 0.2
    overlap = torch.zeros(STEMS, TAIL - 1, device=device)
    wet = torch.linspace(0.1, 0.9, STEMS, device=device)[:, None]
    peak_hold = torch.zeros(STEMS, device=device)
    half = STEPS // 2
    t0 = None
    for step in range(STEPS):
        if step == half:
            sync()
            t0 = time.perf_counter()
        out, overlap, peak = render(stems[step % 3], response, overlap, wet)
        peak_hold = torch.maximum(peak_hold * 0.98, peak)
    sync()
    ms = (time.perf_counter() - t0) * 1e3 / (STEPS - half)
    print(f"peak={peak_hold.max().item():.4f} rms={out.square().mean().sqrt().item():.4f}")
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()
