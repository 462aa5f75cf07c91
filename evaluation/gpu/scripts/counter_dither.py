"""Counter-based dithering of many small feature planes before int8 storage."""
import os
import os
import time
import torch

DEV = os.environ.get("DEVICE", "cuda")
torch.manual_seed(0)

PLANES = 40
SHAPE = (64, 96)
FRAMES = 420
FRAMES = int(os.environ.get("FRAMES", FRAMES))


def sync():
    if DEV == "cuda":
        torch.cuda.synchronize()


def weyl(index, counter):
    """Cheap reproducible noise in [0, 1) from an integer index and a counter."""
    h = (index + counter * 40503) * 2654435761 % 4294967296
    h = (h // 65536) ^ h
    return (h * 2246822519 % 4294967296).float() * 2.0 ** -32


@torch.compile(mode="reduce-overhead")
def dither(planes, index, counter):
    codes, scales = [], []
    for n, p in enumerate(planes):
        noise = weyl(index + 7919 * n, counter)
        s = p.abs().amax() / 127 + 1e-8
        q = torch.floor(p / s + noise).clamp(-127, 127)
        codes.append(q.to(torch.int8))
        scales.append(s)
    return codes, torch.stack(scales)


def make_planes():
    return [torch.randn(SHAPE, device=DEV) for _ in range(PLANES)]


def main():
    index = torch.arange(SHAPE[0] * SHAPE[1], device=DEV).view(SHAPE)
    left, right = make_planes(), make_planes()
    laps = []
    drift = torch.zeros((), device=DEV)
    for frame in range(FRAMES):
        sync()
        t0 = time.perf_counter()
        counter = frame
        for planes in (left, right):
            codes, scales = dither(planes, index, counter)
            drift += codes[0].float().mean() * scales[0] - planes[0].mean()
        sync()
        laps.append(time.perf_counter() - t0)
        if frame % 60 == 0:
            print(f"frame {frame:4d} drift {drift.item():+.6f}")
    laps = sorted(laps[FRAMES // 2:])
    print(f"mean drift {drift.item() / (2 * FRAMES):+.3e}")
    print(f"median frame {laps[len(laps) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
