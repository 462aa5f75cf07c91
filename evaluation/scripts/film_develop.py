"""Develop raw 12-bit scans with a parametric film response, one frame at a time."""
import os
import time

import torch

HEIGHT, WIDTH = 480, 640
LEVELS = 4096
STEPS = int(os.environ.get("STEPS", "240"))


def synth_scan(n, seed=3):
    """Smooth gradients plus grain, quantised like a 12-bit scanner would."""
    g = torch.Generator().manual_seed(seed)
    low = torch.rand(n, 1, 9, 12, generator=g)
    img = torch.nn.functional.interpolate(low, (HEIGHT, WIDTH), mode="bilinear")[:, 0]
    img = img + 0.02 * torch.randn(n, HEIGHT, WIDTH, generator=g)
    return (img.clamp(0, 1) * (LEVELS - 1)).to(torch.int64)


def characteristic_curve(exposure, gamma, toe):
    """Density against log exposure: toe, straight section, shoulder."""
    lin = (torch.arange(LEVELS, dtype=torch.float32) + 0.5) / LEVELS
    logh = torch.log10(lin * exposure + 1e-4)
    density = torch.special.ndtr(gamma * (logh + 1.1))
    toe_lift = toe * torch.exp(-6.0 * lin)
    shoulder = torch.pow(density + toe_lift, 0.9)
    stain = 0.01 * torch.lgamma(1.0 + 3.0 * lin)
    return shoulder + stain


def develop(scan, exposure, gamma, toe, vignette):
    curve = characteristic_curve(exposure, gamma, toe)
    density = curve[scan]
    return (1.0 - density) * vignette


develop_fast = torch.compile(develop)


def make_frame(scan, exposure, gamma, toe, vignette):
    return develop_fast(scan, exposure, gamma, toe, vignette)


def radial_falloff():
    yy = torch.linspace(-1, 1, HEIGHT)[:, None]
    xx = torch.linspace(-1, 1, WIDTH)[None, :]
    return 1.0 - 0.25 * (xx * xx + yy * yy) / 2


def main():
    torch.set_num_threads(1)
    reel = synth_scan(12)
    vignette = radial_falloff()
    exposure = torch.tensor(1.0)
    gamma = torch.tensor(1.65)
    toe = torch.tensor(0.04)
    mean_level = 0.0
    started = time.perf_counter()
    with torch.no_grad():
        for step in range(STEPS):
            scan = reel[step % len(reel)]
            frame = make_frame(scan, exposure, gamma, toe, vignette)
            level = frame[::8, ::8].mean()
            exposure = exposure * (1.0 + 0.1 * (level - 0.45))
            mean_level += float(level)
    took = time.perf_counter() - started
    print(f"{STEPS} frames, {1e3 * took / STEPS:.2f} ms each, "
          f"mean level {mean_level / STEPS:.4f}, last exposure {float(exposure):.3f}")


if __name__ == "__main__":
    main()
