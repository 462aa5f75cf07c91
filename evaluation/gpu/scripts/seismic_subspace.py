"""Tracks the dominant vibration directions of two seismometer strings while chunks of samples stream
in: each chunk updates a running covariance of every string and turns its basis by one power step."""
import os
import time

import torch

torch.set_float32_matmul_precision("high")
torch.manual_seed(5)

STEPS = int(os.environ.get("STEPS", "3000"))
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
STRINGS = 2
SAMPLES = 1024 * 1024
CHANNELS = 32
RANK = 4


def condition(raw, gain):
    """Soft clipping of glitches, then removal of each channel's offset."""
    x = torch.tanh(raw * gain)
    return x - x.mean(dim=1, keepdim=True)


def covariance(x):
    return torch.bmm(x.transpose(1, 2), x) / x.shape[1]


def power_step(cov, basis):
    moved = cov @ basis
    first = moved[..., :1]
    first = first / first.norm(dim=1, keepdim=True)
    rest = moved[..., 1:] - first * (first * moved[..., 1:]).sum(1, keepdim=True)
    rest = rest / (rest.norm(dim=1, keepdim=True) + 1e-6)
    return torch.cat([first, rest], dim=-1)


@torch.compile
def absorb(raw, gain, cov, basis):
    x = condition(raw, gain)
    cov = 0.95 * cov + 0.05 * covariance(x)
    basis = power_step(cov, basis)
    captured = (basis * (cov @ basis)).sum(1)[:, 0] / cov.diagonal(dim1=1, dim2=2).sum(-1)
    return cov, basis, captured


def make_chunk():
    source = torch.randn(STRINGS, SAMPLES, 2, device=DEVICE)
    mixing = torch.randn(STRINGS, 2, CHANNELS, device=DEVICE)
    return source @ mixing + 0.3 * torch.randn(STRINGS, SAMPLES, CHANNELS, device=DEVICE)


@torch.no_grad()
def main():
    chunks = [make_chunk() for _ in range(3)]
    gain = 0.2 + 0.1 * torch.rand(CHANNELS, device=DEVICE)
    cov = torch.eye(CHANNELS, device=DEVICE).repeat(STRINGS, 1, 1)
    basis = torch.randn(STRINGS, CHANNELS, RANK, device=DEVICE)

    for i in range(6):
        cov, basis, captured = absorb(chunks[i % 3], gain, cov, basis)

    mark = STEPS // 2
    for i in range(STEPS):
        if i == mark:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        cov, basis, captured = absorb(chunks[i % 3], gain, cov, basis)
        if i % 500 == 0:
            shares = ", ".join(f"{c:.4f}" for c in captured.tolist())
            print(f"chunk {i}: first direction carries {shares}")
    torch.cuda.synchronize()
    dt = time.perf_counter() - t0
    print(f"ms per step: {dt * 1000 / (STEPS - mark):.3f}")


if __name__ == "__main__":
    main()
