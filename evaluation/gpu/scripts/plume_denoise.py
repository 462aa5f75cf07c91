"""Cleans methane plume recordings with a low-rank filter before a small leak classifier."""
import os
import time

import torch
import torch.nn as nn

STEPS = int(os.environ.get("STEPS", "3000"))
WARMUP = 10
WINDOWS = 64          # windows treated at once
SENSORS = 384
SAMPLES = 256
RANK = 16

torch.manual_seed(4)
device = torch.device("cuda")


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(SENSORS, 128, 1), nn.GELU(),
            nn.Conv1d(128, 128, 1), nn.GELU(),
        )
        self.head = nn.Linear(128, 4)

    def forward(self, x):
        return self.head(self.net(x).mean(-1))


def orthonormal(y):
    q, _ = torch.linalg.qr(y)
    return q


def leading_space(x, basis):
    """One round of subspace iteration, started from the basis of the previous window."""
    return orthonormal(x @ (x.mT @ basis))


class Pipeline(nn.Module):
    def __init__(self):
        super().__init__()
        self.classifier = Classifier()

    def forward(self, x, basis):
        x = x - x.mean(-1, keepdim=True)
        x = x / (x.std(-1, keepdim=True) + 1e-3)
        basis = leading_space(x, basis)
        coefficients = basis.mT @ x
        clean = basis @ coefficients
        residual = (x - clean).square().mean((1, 2))
        return self.classifier(clean).softmax(-1), residual, basis


plumes = torch.randn(WINDOWS, SENSORS, RANK, device=device)


def make_windows():
    courses = torch.randn(WINDOWS, RANK, SAMPLES, device=device)
    return plumes @ courses + 0.5 * torch.randn(WINDOWS, SENSORS, SAMPLES, device=device)


pipeline = Pipeline().to(device).eval()
run = torch.compile(pipeline)
recordings = [make_windows() for _ in range(4)]
basis = torch.linalg.svd(recordings[0], full_matrices=False)[0][..., :RANK].clone()

with torch.no_grad():
    for i in range(WARMUP):
        leak, residual, basis = run(recordings[i % len(recordings)], basis)

    level = torch.zeros((), device=device)
    start = STEPS // 2
    for step in range(STEPS):
        if step == start:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        leak, residual, basis = run(recordings[step % len(recordings)], basis)
        level.lerp_(residual.mean(), 0.05)
        if step % 500 == 0:
            print(f"step {step:5d}  residual {level.item():.5f}  leaks {leak[:, 1:].sum().item():.3f}")

torch.cuda.synchronize()
elapsed = time.perf_counter() - t0
print(f"ms per step: {1e3 * elapsed / (STEPS - start):.3f}")
