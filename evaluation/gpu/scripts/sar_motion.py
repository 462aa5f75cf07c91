"""Motion compensation of airborne SAR raw data: remove the line-of-sight deviation of the
platform pulse by pulse, undo the antenna pattern, and accumulate a quicklook."""
import math
import os
import time

import torch

SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
PULSES = 128 if SMALL else 4096
BINS = 256 if SMALL else 16384
WAVELENGTH = 0.031
R0 = 8200.0
SPEED = 71.5
PRF = 900.0
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def line_of_sight(t, squint):
    """Two-way phase of the reference point along the track, and the antenna gain."""
    along = SPEED * t - R0 * squint
    sway = 0.012 * torch.sin(2.9 * t)
    slant = torch.sqrt(R0 * R0 + along * along) + sway
    phase = (4.0 * math.pi / WAVELENGTH) * (slant - R0)
    look = torch.atan(along / R0)
    gain = torch.cos(look) * torch.cos(0.5 * torch.asin(torch.sin(2.2 * look)))
    return phase, gain


def compensate(raw_i, raw_q, t, squint):
    phase, gain = line_of_sight(t, squint)
    c = torch.cos(phase).float()[:, None]
    s = torch.sin(phase).float()[:, None]
    g = (1.0 / (gain * gain + 0.05)).float()[:, None]
    out_i = (raw_i * c + raw_q * s) * g
    out_q = (raw_q * c - raw_i * s) * g
    return out_i, out_q


compensate_c = torch.compile(compensate)


def main():
    torch.manual_seed(3)
    raw_i = torch.randn(PULSES, BINS, device=device)
    raw_q = torch.randn(PULSES, BINS, device=device)
    squint = torch.tensor(0.002, dtype=torch.float64, device=device)
    # GPS seconds of the pulses; single precision loses the carrier phase
    t = torch.arange(PULSES, dtype=torch.float64, device=device) / PRF - PULSES / (2 * PRF)
    quick = torch.zeros(BINS, device=device)

    half = STEPS // 2
    with torch.no_grad():
        for step in range(STEPS):
            if step == half:
                if device.type == "cuda":
                    torch.cuda.synchronize()
                start = time.perf_counter()
            out_i, out_q = compensate_c(raw_i, raw_q, t, squint)
            quick += out_i[step % PULSES].abs() + out_q[step % PULSES].abs()
            t = t + PULSES / PRF * 1e-3
    if device.type == "cuda":
        torch.cuda.synchronize()
    end = time.perf_counter()
    print(f"quicklook mean {quick.mean().item():.5f}")
    print(f"step_ms={(end - start) * 1e3 / (STEPS - half):.3f}")


if __name__ == "__main__":
    main()
