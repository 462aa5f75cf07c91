"""Digital image correlation: displacement of a speckle pattern under load.

Two bending modes per specimen are fitted by gradient-free coordinate search: each frame
warps the reference speckle with the current guess, compares it with the camera image and
keeps the better of two trial displacements.
"""
import os
import time

import torch
import torch.nn.functional as F

SIZE = 96
SPECIMENS = 8
MODES = 2


def speckle(gen):
    img = torch.rand(SPECIMENS, 4, SIZE, SIZE, generator=gen)
    return F.avg_pool2d(img, 5, stride=1, padding=2)


class Warp:
    def __init__(self):
        axis = torch.linspace(-1, 1, SIZE)
        gy, gx = torch.meshgrid(axis, axis, indexing="ij")
        self.base = torch.stack([gx, gy], -1)
        bend = torch.stack([torch.sin(3.1 * gx) * gy, torch.cos(2.3 * gy) * gx])
        self.modes = torch.stack([bend, 0.5 * bend.flip(0)], -1)

    def field(self, amp):
        return self.base + torch.einsum("sm,mhwd->shwd", amp, self.modes)

    def __call__(self, reference, amp):
        return F.grid_sample(reference, self.field(amp), mode="bilinear",
                             padding_mode="border", align_corners=True)


def normalise(x):
    x = x - x.mean((-2, -1), keepdim=True)
    return x / (x.square().mean((-2, -1), keepdim=True) + 1e-6).sqrt()


class Correlator:
    def __init__(self):
        self.warp = Warp()

    def misfit(self, reference, camera, amp):
        warped = normalise(self.warp(reference, amp))
        robust = torch.log1p((warped - normalise(camera)).square())
        return robust.mean((1, 2, 3))


def main():
    torch.set_num_threads(1)
    steps = int(os.environ.get("STEPS", "240"))
    gen = torch.Generator().manual_seed(17)

    reference = speckle(gen)
    truth = 0.06 * torch.randn(SPECIMENS, MODES, generator=gen)
    corr = Correlator()
    camera = corr.warp(reference, truth)
    camera = camera + 0.01 * torch.randn(camera.shape, generator=gen)
    misfit = torch.compile(corr.misfit, fullgraph=True)

    amp = torch.zeros(SPECIMENS, MODES)
    best = torch.full((SPECIMENS,), float("inf"))
    times = []
    with torch.no_grad():
        for step in range(steps):
            width = 0.04 * 0.985 ** step
            trial = amp + width * torch.randn(SPECIMENS, MODES, generator=gen)
            t0 = time.perf_counter()
            cost = misfit(reference, camera, trial)
            times.append(time.perf_counter() - t0)
            better = cost < best
            best = torch.where(better, cost, best)
            amp = torch.where(better[:, None], trial, amp)

    times = sorted(times[len(times) // 2:])
    print(f"amplitude error {(amp - truth).abs().mean():.5f}  misfit {best.mean():.4f}")
    print(f"median trial {times[len(times) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
