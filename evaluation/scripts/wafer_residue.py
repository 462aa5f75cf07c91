import os
import argparse
import math

import torch
import torch.nn.functional as F

torch.set_num_threads(1)

STEPS = int(os.environ.get("STEPS", "2600"))
RADIUS = 2


def make_kernel(radius, sigma):
    ax = torch.arange(-radius, radius + 1, dtype=torch.float32)
    k = torch.exp(-ax.pow(2) / (2 * sigma * sigma))
    return (k / k.sum()).tolist()


KERNEL = make_kernel(RADIUS, 1.1)


def extend(img):
    r = RADIUS
    return F.pad(img, (r, r, r, r), mode="reflect")


def compress_range(img, knee):
    return torch.tanh(img * knee) / math.tanh(knee)


def smooth(p, h, w):
    rows = None
    for i, k in enumerate(KERNEL):
        part = p[:, :, i:i + h, :] * k
        rows = part if rows is None else rows + part
    out = None
    for j, k in enumerate(KERNEL):
        part = rows[:, :, :, j:j + w] * k
        out = part if out is None else out + part
    return out


@torch.compile
def inspect(img, knee):
    p = compress_range(extend(img), knee)
    blurred = smooth(p, img.shape[-2], img.shape[-1])
    r = RADIUS
    return p[:, :, r:-r, r:-r] - blurred


def synth_dies(n, side, gen):
    yy, xx = torch.meshgrid(
        torch.linspace(0, 6.0, side), torch.linspace(0, 6.0, side), indexing="ij"
    )
    base = 0.5 + 0.2 * torch.sin(3 * xx) * torch.cos(2 * yy)
    noise = 0.02 * torch.randn(n, 1, side, side, generator=gen)
    dies = base + noise
    for k in range(n):
        cy, cx = torch.randint(8, side - 8, (2,), generator=gen).tolist()
        dies[k, 0, cy - 2:cy + 2, cx - 2:cx + 2] += 0.6
    return dies


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--dies", type=int, default=16)
    ap.add_argument("--side", type=int, default=256)
    ap.add_argument("--knee", type=float, default=1.4)
    args = ap.parse_args()

    gen = torch.Generator().manual_seed(5)
    lots = [synth_dies(args.dies, args.side, gen) for _ in range(4)]

    flagged = 0
    for step in range(STEPS):
        lot = lots[step % len(lots)]
        residual = inspect(lot, args.knee)
        flagged += int((residual.abs().amax(dim=(1, 2, 3)) > 0.2).sum())
        if step % 500 == 0:
            print(f"lot {step}: flagged so far {flagged}")
    print("total flagged", flagged)


if __name__ == "__main__":
    main()
