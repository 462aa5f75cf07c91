"""Online novelty detection for vibration spectra: the atlas of known regimes grows when something new turns up."""
import os
import time

import torch

torch.manual_seed(41)

BANDS = 320
BATCH = 256
REGIMES = 14
STEPS = int(os.environ.get("STEPS", "1400"))
LOG = 70
DISCOVERY = 12


def kernel(spec, ref):
    gap = torch.asinh(spec) - torch.asinh(ref)
    weight = torch.exp(-0.5 * ref * ref) + 0.1
    rough = gap * gap / (1.0 + gap.abs())
    return (rough * weight + 0.05 * torch.sin(gap).square()).mean(-1)


@torch.compile
def nearest(spec, atlas, known):
    d = kernel(spec[:, None, :], atlas[None, :, :])
    return d.masked_fill(~known, float("inf")).amin(1)


def feed(step, sources):
    known = min(REGIMES, 1 + step // DISCOVERY)
    pick = torch.randint(0, known, (BATCH,))
    if step % DISCOVERY == 0:
        pick[0] = known - 1
    return sources[pick] + 0.05 * torch.randn(BATCH, BANDS)


def main():
    sources = torch.randn(REGIMES, BANDS)
    atlas = torch.zeros(REGIMES, BANDS)
    atlas[0] = sources[0]
    known = torch.zeros(REGIMES, dtype=torch.bool)
    known[0] = True
    size = 1
    level = torch.zeros(())
    t0 = time.perf_counter()
    for step in range(1, STEPS + 1):
        spec = feed(step, sources)
        distance = nearest(spec, atlas, known)
        far = distance.argmax()
        if size < REGIMES and step % DISCOVERY == 0:
            atlas[size] = spec[far]
            known[size] = True
            size += 1
        level = 0.99 * level + 0.01 * distance.mean()
        if step % LOG == 0:
            dt = (time.perf_counter() - t0) / LOG * 1e3
            print(f"batch {step} regimes {size} novelty {level.item():.5f} {dt:.3f} ms/step")
            t0 = time.perf_counter()


if __name__ == "__main__":
    main()
