"""Streams windows of an ECG through a chain of nonlinear denoisers."""
import argparse

import torch


def soft_limit(x, level):
    return x / (1.0 + x.abs() / level)


def wiener(x, noise):
    power = x * x
    return x * power / (power + noise)


@torch.compile
def denoised(recording, window, passes=6):
    """Yields every window of the recording, denoised."""
    for start in range(0, recording.shape[-1] - window + 1, window):
        piece = recording[..., start:start + window]
        centre = piece.mean(-1, keepdim=True)
        x = piece - centre
        for k in range(passes):
            x = soft_limit(x, 2.0 + k)
            x = wiener(x, 0.05)
            x = x + 0.1 * x.clamp(-1.0, 1.0) * (1.0 - x.abs()).clamp_min(0.0)
        yield x + centre


def synthetic_recording(leads, samples, seed):
    g = torch.Generator().manual_seed(seed)
    t = torch.linspace(0, 60, samples)
    beat = torch.exp(-40 * (torch.remainder(t, 0.8) - 0.3) ** 2)
    phases = torch.rand(leads, 1, generator=g)
    noise = 0.2 * torch.randn(leads, samples, generator=g)
    return beat * (0.5 + phases) + noise


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--steps", type=int, default=2900)
    ap.add_argument("--leads", type=int, default=48)
    args = ap.parse_args()
    torch.manual_seed(0)
    recording = synthetic_recording(args.leads, 8192, seed=2)
    total = torch.zeros(())
    for step in range(args.steps):
        shifted = torch.roll(recording, step % 500, dims=-1)
        for window in denoised(shifted, 1024):
            total += window.square().mean()
        if step % 50 == 49:
            print(f"{step + 1:6d} power {total.item() / (step + 1):.5f}")


if __name__ == "__main__":
    main()
