"""Temporal denoising of a video: warp the running estimate along the flow, then blend."""
import os
import time

import torch
import torch.nn.functional as F

H, W, CH = 144, 192, 3
STEPS = int(os.environ.get("STEPS", "240"))


def make_clip(frames, seed=0):
    g = torch.Generator().manual_seed(seed)
    base = F.interpolate(torch.rand(1, CH, 18, 24, generator=g), (H, W + frames),
                         mode="bilinear", align_corners=False)
    clip = [base[..., k:k + W] for k in range(frames)]
    return [c + 0.08 * torch.randn(1, CH, H, W, generator=g) for c in clip]


def identity_grid():
    ys = torch.linspace(-1, 1, H)
    xs = torch.linspace(-1, 1, W)
    gy, gx = torch.meshgrid(ys, xs, indexing="ij")
    return torch.stack([gx, gy], dim=-1)[None]


def warp(estimate, grid):
    return F.grid_sample(estimate, grid, mode="bicubic",
                         padding_mode="border", align_corners=True)


def robust_weight(residual, noise):
    energy = (residual * residual).mean(dim=1, keepdim=True)
    return torch.exp(-energy / (2.0 * noise * noise))


def update(frame, estimate, flow, base_grid, noise):
    scale = torch.stack([flow[..., 0] * (2.0 / (W - 1)), flow[..., 1] * (2.0 / (H - 1))], dim=-1)
    moved = warp(estimate, base_grid + scale)
    residual = frame - moved
    keep = 0.85 * robust_weight(residual, noise)
    fresh = keep * moved + (1.0 - keep) * frame
    sharpened = fresh + 0.1 * torch.tanh(fresh - frame)
    return sharpened.clamp(0, 1), residual.abs().mean()


class TemporalFilter:
    def __init__(self, noise=0.15):
        self.noise = torch.tensor(noise)
        self.grid = identity_grid()
        self.estimate = None
        self.update = torch.compile(update)

    def push(self, frame, flow):
        if self.estimate is None:
            self.estimate = frame
            return torch.zeros(())
        self.estimate, err = self.update(frame, self.estimate, flow, self.grid, self.noise)
        return err


def main():
    torch.set_num_threads(1)
    clip = make_clip(24)
    flow = torch.zeros(1, H, W, 2)
    flow[..., 0] = 1.0
    filt = TemporalFilter()
    errors = []
    started = time.perf_counter()
    with torch.no_grad():
        for step in range(STEPS):
            errors.append(filt.push(clip[step % len(clip)], flow))
    took = time.perf_counter() - started
    tail = torch.stack(errors[-20:]).mean()
    print(f"{STEPS} frames, {1e3 * took / STEPS:.2f} ms each, residual {float(tail):.4f}")


if __name__ == "__main__":
    main()
