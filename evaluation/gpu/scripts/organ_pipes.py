"""Voicing check of a church organ.

Every take holds one recording per pipe.  A take is passed through the saturation of the
microphone chain; loudness and crest factor of each pipe, and their spread over the rank,
are what the voicer looks at.
"""
import os
import time

import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
PIPES = 12 if SMALL else 192
SAMPLES = 512 if SMALL else 4096
RATE = 48000.0
DRIVE = 0.8


def record_take(device):
    """One recording per pipe, an equal-tempered rank upwards from 65 Hz."""
    t = torch.arange(SAMPLES, device=device) / RATE
    take = []
    for k in range(PIPES):
        f = 65.4 * 2.0 ** (k / 48.0)
        tone = sum(torch.sin(2 * torch.pi * f * h * t + 0.3 * k) / h ** 1.4 for h in (1, 2, 3, 5))
        take.append(tone + 0.01 * torch.randn(SAMPLES, device=device))
    return take


@torch.compile
def voicing(take):
    loud, crest = [], []
    for pipe in take:
        s = torch.tanh(DRIVE * pipe)
        s = s - s.mean()
        power = s.square().mean()
        loud.append(10.0 * torch.log10(power + 1e-9))
        crest.append(s.abs().amax() / torch.sqrt(power + 1e-9))
    loud = torch.stack(loud)
    crest = torch.stack(crest)
    return loud.std(), crest.mean(), loud


def clock():
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def main():
    torch.manual_seed(6)
    takes = [record_take(DEVICE) for _ in range(4)]
    spread = torch.zeros((), device=DEVICE)
    peaky = torch.zeros((), device=DEVICE)
    half = STEPS // 2
    t0 = clock()
    for step in range(STEPS):
        if step == half:
            t0 = clock()
        sd, cf, loud = voicing(takes[step % 4])
        spread.mul_(0.9).add_(sd, alpha=0.1)
        peaky.mul_(0.9).add_(cf, alpha=0.1)
    ms = (clock() - t0) * 1e3 / (STEPS - half)
    print(f"spread {spread.item():.4f} dB  crest {peaky.item():.4f}  softest {loud.min().item():.2f} dB")
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()
