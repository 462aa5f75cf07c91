"""Encoding model: voxel responses from a bank of gamma-shaped haemodynamic lags."""
import os
import time

import torch
import torch.nn as nn

SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
N_SAMPLES = 2048 if SMALL else 524_288
N_REGRESSORS = 16
SHAPES = [2.1, 2.9, 3.6, 4.4, 5.3, 6.1, 7.2, 8.3]
SCALES = [0.70, 0.80, 0.90, 1.00, 1.10, 1.20, 1.35, 1.50]


def sync():
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()


def gamma_shape(lag, shape, scale):
    return torch.pow(lag, shape) * torch.exp(-lag / scale)


class EncodingModel(nn.Module):
    """Time-since-onset of each regressor -> gamma bank -> voxel readout."""

    def __init__(self, n_regressors, n_voxels):
        super().__init__()
        self.readout = nn.Linear(n_regressors * len(SHAPES), n_voxels)
        self.gain = nn.Parameter(torch.ones(n_voxels))
        self.register_buffer("shapes", torch.tensor(SHAPES).unsqueeze(-1))
        self.register_buffer("scales", torch.tensor(SCALES).unsqueeze(-1))

    def bank(self, lag):
        return gamma_shape(lag.unsqueeze(-2), self.shapes, self.scales).flatten(-2)

    def forward(self, lag):
        return self.readout(self.bank(lag)) * self.gain


class Scanner:
    """Cycles through a few preloaded runs of onset lags (seconds)."""

    def __init__(self, n_runs):
        gen = torch.Generator(device=DEVICE).manual_seed(3)
        self.runs = [
            torch.rand(N_SAMPLES, N_REGRESSORS, device=DEVICE, generator=gen) * 11.5 + 0.5
            for _ in range(n_runs)
        ]

    def run(self, i):
        return self.runs[i % len(self.runs)]


def main():
    torch.manual_seed(0)
    model = EncodingModel(N_REGRESSORS, 32).to(DEVICE).eval()
    predict = torch.compile(model)
    scanner = Scanner(3)
    score = torch.zeros((), device=DEVICE)

    half = STEPS // 2
    start = None
    with torch.no_grad():
        for i in range(STEPS):
            if i == half:
                sync()
                start = time.perf_counter()
            pred = predict(scanner.run(i))
            score += pred[:256].abs().mean()
    sync()
    elapsed = time.perf_counter() - start
    print(f"mean response {score.item() / STEPS:.5f}")
    print(f"step_ms={elapsed * 1e3 / max(1, STEPS - half):.3f}")


if __name__ == "__main__":
    main()
