"""Level statistics of a many-channel antenna recorder: one frame holds 65536 channels x 8192 samples."""
import os
import time

import torch

CHANNELS = 65536
SAMPLES = 8192
RING = 4
FRAMES = int(os.environ.get("STEPS", "6000"))

device = "cuda"


@torch.compile(mode="reduce-overhead")
def levels(frame, offset_db, history):
    rms = torch.linalg.vector_norm(frame, dim=1)
    db = 20.0 * torch.log10(rms + 1e-9) + offset_db
    db = db - db.mean()
    spread = db.square().mean().sqrt()
    score = db / (spread + 1e-6)
    smooth = 0.9 * history + 0.1 * score
    alarm = torch.sigmoid((smooth.abs() - 3.0) * 4.0)
    return smooth, alarm.sum(), spread


def record(seed):
    gen = torch.Generator(device=device).manual_seed(seed)
    frame = torch.empty(CHANNELS, SAMPLES, device=device)
    frame.normal_(generator=gen)
    gains = torch.rand(CHANNELS, 1, generator=gen, device=device) + 0.5
    return frame.mul_(gains)


def main():
    ring = [record(i) for i in range(RING)]
    offset = torch.linspace(-1.0, 1.0, CHANNELS, device=device)
    history = torch.zeros(CHANNELS, device=device)
    t0 = time.perf_counter()
    with torch.no_grad():
        for n in range(FRAMES):
            torch.compiler.cudagraph_mark_step_begin()
            smooth, alarms, spread = levels(ring[n % RING], offset, history)
            history.copy_(smooth)
            if (n + 1) % 1000 == 0:
                a, s = alarms.item(), spread.item()
                dt = time.perf_counter() - t0
                t0 = time.perf_counter()
                print(f"frame {n + 1}: alarms {a:.2f} spread {s:.3f} dB, {dt:.2f} ms per frame")


if __name__ == "__main__":
    main()
