"""Frame-by-frame wavelet-ish shrinkage over a live stream of images."""
import itertools
import statistics
import time
from typing import Iterator

import torch
import torch.nn.functional as F


def camera(n, h=384, w=512, seed=9) -> Iterator[torch.Tensor]:
    g = torch.Generator().manual_seed(seed)
    yy = torch.linspace(0, 6.28, h)[:, None]
    xx = torch.linspace(0, 6.28, w)[None, :]
    cache = []
    for k in range(8):
        clean = 0.5 + 0.25 * torch.sin(3 * yy + 0.2 * k) * torch.cos(2 * xx - 0.1 * k)
        cache.append(clean + 0.08 * torch.randn(h, w, generator=g))
    for k in range(n):
        yield cache[k % len(cache)]


def shrink(d, tau):
    mag = d.abs()
    return torch.sign(d) * F.softplus((mag - tau) * 60.0) / 60.0


def haar(x):
    a, b = x[0::2, 0::2], x[0::2, 1::2]
    c, d = x[1::2, 0::2], x[1::2, 1::2]
    ll = (a + b + c + d) * 0.5
    lh = (a - b + c - d) * 0.5
    hl = (a + b - c - d) * 0.5
    hh = (a - b - c + d) * 0.5
    return ll, lh, hl, hh


def ihaar(ll, lh, hl, hh):
    top = torch.stack([ll + lh + hl + hh, ll - lh + hl - hh], -1).flatten(-2)
    low = torch.stack([ll + lh - hl - hh, ll - lh - hl + hh], -1).flatten(-2)
    return 0.5 * torch.stack([top, low], -2).flatten(0, 1)


def process(frame, state, tau):
    ll, lh, hl, hh = haar(frame)
    clean = ihaar(ll, shrink(lh, tau), shrink(hl, tau), shrink(hh, 2 * tau))
    resid = frame - state
    motion = torch.sigmoid(resid.abs() * 12.0 - 3.0) * (1 - torch.exp(-resid * resid * 40.0))
    state = motion * clean + (1 - motion) * (0.8 * state + 0.2 * clean)
    view = (state - 0.5) * 1.2 + 0.5
    return state, view.clamp(0, 1)


@torch.compile
def denoise(frames, tau):
    state = None
    for frame in frames:
        if state is None:
            state = frame
        state, view = process(frame, state, tau)
        yield view


def main():
    tau = torch.tensor(0.06)
    total, skip = 240, 10
    stamps = []
    brightness = []
    with torch.no_grad():
        stream = denoise(camera(total + skip), tau)
        for view in itertools.islice(stream, skip):
            pass
        last = time.perf_counter()
        for n, view in enumerate(stream):
            now = time.perf_counter()
            stamps.append(now - last)
            if n % 100 == 0:
                brightness.append(round(view.mean().item(), 4))
            last = time.perf_counter()
    print("brightness", brightness)
    print(f"frame: {statistics.median(stamps) * 1e3:.2f} ms ({len(stamps)} frames)")


if __name__ == "__main__":
    main()
