"""Aligns 2-D laser scans of a corridor with soft-assign point matching: a rigid pose is
refined per scan while the match kernel is sharpened from wide to narrow."""
import math
import os
import statistics
import time

import torch
from torch import nn

POINTS, LANDMARKS, ROUNDS = 600, 480, 24


class SoftMatcher(nn.Module):
    def __init__(self, landmarks):
        super().__init__()
        self.register_buffer("landmarks", landmarks)
        self.width = 1.0
        self.outlier = 0.02

    def sharpen(self, round_index):
        self.width = 1.0 * 0.88 ** round_index

    def forward(self, scan, pose):
        c, s = torch.cos(pose[2]), torch.sin(pose[2])
        x = c * scan[:, 0] - s * scan[:, 1] + pose[0]
        y = s * scan[:, 0] + c * scan[:, 1] + pose[1]
        dx = x[:, None] - self.landmarks[None, :, 0]
        dy = y[:, None] - self.landmarks[None, :, 1]
        d2 = dx * dx + dy * dy
        # Cauchy-tailed kernel keeps far points from vanishing completely
        k = torch.exp(-0.5 * d2 / self.width ** 2) + 0.01 / (1.0 + d2 / self.width ** 2)
        m = k / (k.sum(1, keepdim=True) + self.outlier)
        m = m / (m.sum(0, keepdim=True) + self.outlier)
        w = m.sum(1)
        tx = (m * self.landmarks[None, :, 0]).sum(1) / (w + 1e-9)
        ty = (m * self.landmarks[None, :, 1]).sum(1) / (w + 1e-9)
        return self.solve(scan, torch.stack([tx, ty], 1), w), (m * d2).sum() / w.sum()

    def solve(self, scan, target, w):
        """Closed-form weighted rigid fit in the plane."""
        w = (w / w.sum()).unsqueeze(1)
        ca, cb = (w * scan).sum(0), (w * target).sum(0)
        a, b = scan - ca, target - cb
        dot = (w * a * b).sum()
        cross = (w[:, 0] * (a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0])).sum()
        angle = torch.atan2(cross, dot)
        c, s = torch.cos(angle), torch.sin(angle)
        return torch.stack([cb[0] - c * ca[0] + s * ca[1], cb[1] - s * ca[0] - c * ca[1], angle])


def corridor(gen):
    u = torch.rand(LANDMARKS, generator=gen)
    wall = torch.randint(0, 4, (LANDMARKS,), generator=gen)
    x = torch.where(wall < 2, 8 * u - 4, torch.where(wall == 2, -4.0, 4.0))
    y = torch.where(wall == 0, -1.5, torch.where(wall == 1, 1.5, 3 * u - 1.5))
    return torch.stack([x, y], 1)


def observe(landmarks, pose, gen):
    pick = torch.randint(0, LANDMARKS, (POINTS,), generator=gen)
    p = landmarks[pick] + 0.02 * torch.randn(POINTS, 2, generator=gen) - pose[:2]
    c, s = math.cos(pose[2]), math.sin(pose[2])
    return torch.stack([c * p[:, 0] + s * p[:, 1], c * p[:, 1] - s * p[:, 0]], 1)


def main():
    steps = int(os.environ.get("STEPS", "240"))
    torch.set_num_threads(1)
    gen = torch.Generator().manual_seed(17)
    landmarks = corridor(gen)
    matcher = SoftMatcher(landmarks).eval()
    refine = torch.compile(matcher)

    errors, times, residual = [], [], torch.tensor(0.0)
    start = time.perf_counter()
    with torch.no_grad():
        for step in range(steps):
            t0 = time.perf_counter()
            if step % ROUNDS == 0:
                truth = torch.tensor([0.3, 0.2, 0.15]) * torch.randn(3, generator=gen)
                scan, pose = observe(landmarks, truth, gen), torch.zeros(3)
            matcher.sharpen(step % ROUNDS)
            pose, residual = refine(scan, pose)
            if step % ROUNDS == ROUNDS - 1:
                errors.append((pose - truth).abs().max().item())
            times.append(time.perf_counter() - t0)

    print("pose errors:", " ".join(f"{e:.3f}" for e in errors))
    print(f"residual {residual.item():.4f}, {time.perf_counter() - start:.1f} s in all, "
          f"{1e3 * statistics.median(times[steps // 2:]):.3f} ms/step")


if __name__ == "__main__":
    main()
