"""Active sonar: find the strongest echo cell in range/doppler maps as pings come in."""
import os
import math
import time

import torch

N_RANGE = 4096
N_DOPPLER = 8192
N_FRAMES = 6
RUN_SECONDS = float(os.environ.get("RUN_SECONDS", "25.0"))

device = "cuda" if torch.cuda.is_available() else "cpu"


def make_frames(n, gen):
    """Synthetic complex maps, stored as separate real / imaginary planes."""
    frames = []
    for _ in range(n):
        re = torch.randn(N_RANGE, N_DOPPLER, generator=gen, device=device)
        im = torch.randn(N_RANGE, N_DOPPLER, generator=gen, device=device)
        r = int(torch.randint(0, N_RANGE, (1,)).item())
        d = int(torch.randint(0, N_DOPPLER, (1,)).item())
        re[r, d] += 60.0
        frames.append((re, im, r, d))
    return frames


def range_gain(n):
    r = torch.linspace(0.05, 1.0, n, device=device)
    spreading = 20.0 * torch.log10(r * 1000.0)
    absorption = 0.004 * r * 1000.0
    return torch.pow(10.0, (spreading + absorption) / 40.0) / 10.0


def doppler_notch(n):
    d = torch.linspace(-1.0, 1.0, n, device=device)
    return 1.0 - torch.exp(-((d / 0.01) ** 2))


@torch.compile
def strongest_cell(re, im, gain, notch):
    power = re * re + im * im
    power = power * gain[:, None] * notch[None, :]
    level = 10.0 * torch.log10(power + 1e-12)
    best, col = level.max(dim=1)
    row = torch.argmax(best)
    return row * N_DOPPLER + col.gather(0, row[None])[0]


@torch.compile
def refine(re, im, cell):
    r = cell // N_DOPPLER
    d = cell % N_DOPPLER
    left = (d - 1).clamp(min=0)
    right = (d + 1).clamp(max=N_DOPPLER - 1)
    near = torch.stack([r * N_DOPPLER + left, cell, r * N_DOPPLER + right])
    a, b, c = (re.take(near) ** 2 + im.take(near) ** 2).unbind()
    offset = 0.5 * (a - c) / (a - 2 * b + c + 1e-9)
    return torch.stack([r.float(), d.float() + offset, b])


@torch.inference_mode()
def main():
    gen = torch.Generator(device=device).manual_seed(11)
    torch.manual_seed(11)
    frames = make_frames(N_FRAMES, gen)
    gain = range_gain(N_RANGE)
    notch = doppler_notch(N_DOPPLER)
    track = torch.zeros(3, device=device)

    def ping(k):
        nonlocal track
        re, im, _, _ = frames[k % N_FRAMES]
        cell = strongest_cell(re, im, gain, notch)
        fix = refine(re, im, cell)
        track = 0.9 * track + 0.1 * fix

    for k in range(5):
        ping(k)
    print("first fix", [round(v, 2) for v in track.tolist()])

    k = 0
    start = time.perf_counter()
    while time.perf_counter() - start < RUN_SECONDS:
        for _ in range(100):
            ping(k)
            k += 1
        _ = track.tolist()
    took = time.perf_counter() - start
    ms = 1e3 * took / k
    print(f"{k} pings, {ms:.3f} ms each, {math.floor(1e3 / ms)} pings/s")


if __name__ == "__main__":
    main()
