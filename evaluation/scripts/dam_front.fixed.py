"""Wet/dry front tracker: a narrow active strip of a long channel is advanced every step."""
import os
import time

import torch

torch.manual_seed(4)

NX = 3_000_000
STRIP = 100_000
STEPS = int(os.environ.get("STEPS", "5000"))
LOG = 250


def minmod(a, b):
    return 0.5 * (torch.sign(a) + torch.sign(b)) * torch.minimum(a.abs(), b.abs())


@torch.compile
def advance(hs, qs, dt):
    u = qs / (hs + 1e-3)
    left = hs[1:-1] - hs[:-2]
    right = hs[2:] - hs[1:-1]
    slope = minmod(left, right)
    flux = u[1:-1] * hs[1:-1] + 0.25 * slope
    drag = 0.02 * u[1:-1] * u[1:-1].abs()
    dh = dt * (0.3 * (left - right).neg() - 0.01 * flux)
    dq = dt * (drag + 0.2 * slope)
    hs = torch.cat([hs[:1], hs[1:-1] + dh, hs[-1:]])
    return dh, dq, hs.amax(), u.abs().amax()


def dam_break():
    x = torch.linspace(0, 1, NX)
    depth = torch.where(x < 0.5, 2.0, 0.5) + 0.01 * torch.rand(NX)
    return depth, 0.05 * torch.rand(NX)


def main():
    depth, discharge = dam_break()
    lo = NX // 2 - STRIP // 2
    t0 = time.perf_counter()
    for step in range(1, STEPS + 1):
        dh, dq, top, fast = advance(depth[lo : lo + STRIP], discharge[lo : lo + STRIP], 0.01)
        depth[lo + 1 : lo + STRIP - 1] += dh
        discharge[lo + 1 : lo + STRIP - 1] -= dq
        if step % LOG == 0:
            dt = (time.perf_counter() - t0) / LOG * 1e3
            print(f"step {step} crest {top.item():.4f} speed {fast.item():.4f} volume {depth[lo : lo + STRIP].mean().item():.5f} {dt:.3f} ms/step")
            t0 = time.perf_counter()


if __name__ == "__main__":
    main()
