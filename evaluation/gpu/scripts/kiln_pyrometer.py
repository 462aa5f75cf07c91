"""Thermal camera model for a rotary cement kiln.

Each frame of wall temperatures is turned into the radiance the camera would see through
its near-infrared filter: Planck's law summed over the filter bands.  The band sum is a
hand-written kernel; the emissivity correction and the detector curve are plain tensors.
"""
import os
import time

import torch

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
H, W = (64, 96) if SMALL else (2048, 2048)
BANDS = 64
C2_UM_K = 14387.769      # second radiation constant, micrometre kelvin
DARK = 0.0125            # detector offset

if triton is not None:

    @triton.jit
    def band_sum(temp_ptr, lam_ptr, filt_ptr, out_ptr, n, c2, dark,
                 BLOCK: tl.constexpr, NB: tl.constexpr):
        pix = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        ok = pix < n
        t = tl.load(temp_ptr + pix, mask=ok, other=1500.0)
        band = tl.arange(0, NB)
        lam = tl.load(lam_ptr + band)
        filt = tl.load(filt_ptr + band)
        x = c2 / (lam[None, :] * t[:, None])
        rad = filt[None, :] / (tl.exp(x) - 1.0)
        total = tl.sum(rad, axis=1) + dark
        tl.store(out_ptr + pix, total, mask=ok)


def radiance(temp, lam, filt):
    if temp.device.type != "cuda":
        x = C2_UM_K / (lam * temp.reshape(-1, 1))
        return (filt / (torch.exp(x) - 1.0)).sum(1).reshape(temp.shape) + DARK
    out = torch.empty_like(temp)
    n = temp.numel()
    band_sum[((n + 31) // 32,)](temp, lam, filt, out, n, C2_UM_K, DARK,
                                BLOCK=32, NB=BANDS)
    return out


@torch.compile
def render(wall, glow, lam, filt, emiss):
    temp = (wall + 40.0 * torch.tanh(glow)).clamp(600.0, 2200.0)
    seen = radiance(temp, lam, filt)
    signal = emiss * seen / (1.0 + 0.2 * emiss * seen)
    return torch.sqrt(signal), signal.mean()


def clock():
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def main():
    torch.manual_seed(8)
    lam = torch.linspace(0.85, 1.70, BANDS, device=DEVICE)
    filt = torch.exp(-((lam - 1.3) / 0.2) ** 2) * 1e3 / lam ** 5
    yy = torch.linspace(0, 6.0, H, device=DEVICE)[:, None]
    xx = torch.linspace(0, 9.0, W, device=DEVICE)[None, :]
    wall = 1500.0 + 180.0 * torch.sin(yy) * torch.cos(xx)
    glows = [torch.randn(H, W, device=DEVICE) for _ in range(4)]
    emiss = 0.75 + 0.1 * torch.rand(H, W, device=DEVICE)
    level = torch.zeros((), device=DEVICE)
    half = STEPS // 2
    t0 = clock()
    for step in range(STEPS):
        if step == half:
            t0 = clock()
        image, mean = render(wall, glows[step % 4], lam, filt, emiss)
        level.mul_(0.9).add_(mean, alpha=0.1)
    ms = (clock() - t0) * 1e3 / (STEPS - half)
    print(f"signal level {level.item():.5f}  brightest {image.max().item():.4f}")
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()
