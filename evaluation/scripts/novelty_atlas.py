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
def nearest(spec, atlas):
    best = None
    for ref in atlas:
        d = kernel(spec, ref)
        best = d if best is None else torch.minimum(best, d)
    return best


def feed(step, sources):
    known = min(REGIMES, 1 + step // DISCOVERY)
    pick = torch.randint(0, known, (BATCH,))
    if step % DISCOVERY == 0:
        pick[0] = known - 1
    return sources[pick] + 0.05 * torch.randn(BATCH, BANDS)


def main():
    sources = torch.randn(REGIMES, BANDS)
    atlas = [sources[0].clone()]
    level = torch.zeros(())
    t0 = time.perf_counter()
    for step in range(1, STEPS + 1):
        spec = feed(step, sources)
        distance = nearest(spec, atlas)
        far = distance.argmax()
        if len(atlas) < REGIMES and step % DISCOVERY == 0:
            atlas.append(spec[far].clone())
        level = 0.99 * level + 0.01 * distance.mean()
        if step % LOG == 0:
            dt = (time.perf_counter() - t0) / LOG * 1e3
            print(f"batch {step} regimes {len(atlas)} novelty {level.item():.5f} {dt:.3f} ms/step")
            t0 = time.perf_counter()


if __name__ == "__main__":
    main()
