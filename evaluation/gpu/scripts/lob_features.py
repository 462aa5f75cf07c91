"""Order-book research: lagged momentum and imbalance signals over many symbols, with a running memory."""
import os
import time

import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))

SYMBOLS = 32 if SMALL else 8192
TICKS = 512 if SMALL else 4096
LEVELS = 3
LOG_EVERY = 100
torch.set_float32_matmul_precision("highest")


def zscore(x):
    x = x - x.mean(dim=1, keepdim=True)
    return x / (x.square().mean(dim=1, keepdim=True).sqrt() + 1e-6)


@torch.compile
def features(ret, size, half_life, memory):
    parts = []
    for k in range(1, LEVELS + 1):
        lagged = torch.roll(ret, k, dims=1).clone()
        lagged[:, :k] = 0.0
        parts.append(zscore(lagged * torch.exp2(-k / half_life)))
    imbalance = zscore(torch.tanh(size.permute(1, 0).contiguous().t() - 0.5))
    signal = sum(parts) / LEVELS + 0.1 * imbalance
    signal = torch.nan_to_num(signal).clamp(-5.0, 5.0)
    memory.mul_(0.99).add_(signal[:, -1], alpha=0.01)
    pnl = (torch.sign(signal[:, :-1]) * ret[:, 1:]).double().sum(dim=1).float()
    return pnl, signal.abs().mean()


def sync():
    if device.type == "cuda":
        torch.cuda.synchronize()


@torch.no_grad()
def main():
    gen = torch.Generator(device=device).manual_seed(29)
    ret = 0.001 * torch.randn(SYMBOLS, TICKS, device=device, generator=gen)
    size = torch.rand(SYMBOLS, TICKS, device=device, generator=gen)
    half_life = torch.tensor(2.0, device=device)
    memory = torch.zeros(2, SYMBOLS, device=device)
    total = torch.zeros(SYMBOLS, device=device)
    half = STEPS // 2
    t0 = None
    for step in range(STEPS):
        if step == half:
            sync()
            t0 = time.perf_counter()
        pnl, gross = features(ret, size, half_life, memory[step % 2])
        total += pnl
        if step % LOG_EVERY == 0:
            print(f"step {step} gross={gross.item():.4f}")
    sync()
    ms = (time.perf_counter() - t0) * 1e3 / (STEPS - half)
    print(f"mean_pnl={total.mean().item():.6f} memory={memory.abs().mean().item():.5f}")
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()
