"""Harmonic regression features for water-level forecasts at many gauge stations."""
import os
import math
import time

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"

SAMPLES = 3_000_000
HARMONICS = 8
OUTPUTS = 8
SECONDS = float(os.environ.get("SECONDS", "25.0"))

# period in hours, nodal modulation (rad / day), damping depth
CONSTITUENTS = [
    (12.4206, 0.0022, 0.9),
    (12.0000, 0.0000, 0.7),
    (23.9345, 0.0017, 0.5),
    (25.8193, 0.0029, 0.4),
    (12.6583, 0.0011, 0.3),
]


def basis(hours, depth, harmonics):
    """Five constituents, each with a bank of harmonics."""
    t = hours[:, None]
    d = depth[:, None]
    groups = []
    for period, nodal, damping in CONSTITUENTS:
        omega = 2 * math.pi / period
        f = 1.0 + 0.037 * torch.cos(nodal * t / 24.0)
        u = 0.15 * torch.sin(nodal * t / 24.0)
        phase = omega * t * harmonics + u
        shallow = torch.exp(-damping * harmonics / (1.0 + d))
        asym = torch.sin(2.0 * phase) * torch.tanh(damping / d)
        groups.append(f * shallow * torch.cos(phase + 0.3 * asym))
    return torch.cat(groups, dim=1)


class HarmonicModel:
    def __init__(self):
        width = len(CONSTITUENTS) * HARMONICS
        self.harmonics = torch.arange(1, HARMONICS + 1, device=device, dtype=torch.float32)
        self.mean = torch.randn(width, device=device) * 0.01
        self.std = torch.rand(width, device=device) * 0.2 + 0.6
        self.coef = torch.randn(width, OUTPUTS, device=device) / width**0.5
        self.run = torch.compile(self._run)

    def _run(self, hours, depth):
        feats = basis(hours, depth, self.harmonics)
        feats = (feats - self.mean) / self.std
        return feats @ self.coef

    @torch.no_grad()
    def __call__(self, hours, depth):
        return self.run(hours, depth)


def observations(k):
    g = torch.Generator(device=device).manual_seed(k)
    hours = torch.rand(SAMPLES, generator=g, device=device) * 24 * 30
    depth = torch.rand(SAMPLES, generator=g, device=device) * 40 + 2
    return hours, depth


def main():
    torch.manual_seed(2)
    torch.set_float32_matmul_precision("high")
    model = HarmonicModel()
    blocks = [observations(k) for k in range(4)]
    for b in blocks:
        level = model(*b)
    print("first levels", [round(v, 3) for v in level[0, :4].tolist()])

    done = 0
    t0 = time.perf_counter()
    while time.perf_counter() - t0 < SECONDS:
        peak = torch.full((OUTPUTS,), -1e9, device=device)
        for i in range(120):
            level = model(*blocks[i % len(blocks)])
            peak = torch.maximum(peak, level[:4096].amax(dim=0))
        done += 120
        top = peak.max().item()
    took = time.perf_counter() - t0
    print(f"{done} blocks, {1e3 * took / done:.3f} ms per block, {SAMPLES * done / took / 1e6:.0f} M samples/s, peak {top:.3f}")


if __name__ == "__main__":
    main()
