"""Continuous infrasound detector: a very long analysis window slides along the recorded
array beam; every hop the frame levels are recomputed and compared with the noise floor."""
import os
import time

import numpy as np
import torch

dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
STEPS = int(os.environ.get("STEPS", "300"))
SMALL = os.environ.get("SMALL") == "1"

FS = 1430.0                       # samples per second, after decimation
FRAME = 2048
N_FRAMES = 64 if SMALL else 96000
HOP = int(round(0.7 * FS)) // 4 * 4   # advance of the window between detections
FLOOR_TAU = 40.0


def record_beam(n, seed=11):
    g = torch.Generator(device=dev).manual_seed(seed)
    beam = torch.empty(n, device=dev)
    beam.normal_(0.0, 0.02, generator=g)
    # a handful of explosions
    rng = np.random.default_rng(seed)
    for _ in range(12):
        at = int(rng.integers(0, n - FRAME))
        m = min(FRAME, n - at)
        t = torch.arange(m, device=dev) / FS
        beam[at:at + m] += 0.4 * torch.exp(-2.0 * t) * torch.sin(2 * np.pi * 3.1 * t)
    return beam


def gate(window, floor, weight):
    """Frame levels of the window, smoothed noise floor and the frames that stick out."""
    frames = window.view(-1, FRAME)
    level = torch.linalg.vector_norm(frames, dim=-1) * (FRAME ** -0.5)
    new_floor = floor + (level - floor) * weight
    excess = torch.log1p(level / (new_floor + 1e-6))
    hit = torch.sigmoid((excess - 1.2) * 9.0)
    return new_floor, hit


def main():
    span = N_FRAMES * FRAME
    beam = record_beam(span + STEPS * HOP)
    floor = torch.full((N_FRAMES,), 0.02, device=dev)
    weight = torch.tensor(1.0 / FLOOR_TAU, device=dev)
    total = torch.zeros(N_FRAMES, device=dev)
    gate_c = torch.compile(gate)

    half, t0 = STEPS // 2, None
    with torch.no_grad():
        for k in range(STEPS):
            if k == half:
                if dev.type == "cuda":
                    torch.cuda.synchronize()
                t0 = time.perf_counter()
            start = k * HOP
            window = beam[start:start + span]
            floor, hit = gate_c(window, floor, weight)
            total += hit
    if dev.type == "cuda":
        torch.cuda.synchronize()
    ms = (time.perf_counter() - t0) * 1e3 / (STEPS - half)
    print(f"mean hits {total.mean().item() / STEPS:.5f}  floor {floor.mean().item():.5f}")
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()
