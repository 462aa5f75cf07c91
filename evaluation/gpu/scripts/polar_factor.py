"""Polar factors of large matrices by Newton-Schulz iterations in bfloat16 (orthogonal parts for a subspace tracker)."""
import os
import time
import torch

torch.manual_seed(6)
dev = "cuda"
N = 8192


@torch.compile
def newton_schulz(x):
    for _ in range(3):
        g = x @ x.mT
        x = 1.5 * x - 0.5 * (g @ x)
    return x


@torch.no_grad()
def main():
    base = torch.randn(N, N, device=dev, dtype=torch.bfloat16)
    drift = torch.randn(N, N, device=dev, dtype=torch.bfloat16)
    t0 = time.time()
    x = base / (2.2 * N ** 0.5)
    for it in range(int(os.environ.get("STEPS", "2500"))):
        x = newton_schulz(x)
        if it % 5 == 4:
            x = (x + 0.02 * drift / N ** 0.5) * 0.9
        if it % 100 == 0:
            dev_norm = (x @ x[:64].mT).float().norm().item()
            print(f"iter {it} |x x^T[:64]| {dev_norm:.4f} {time.time() - t0:.1f}s", flush=True)
    torch.cuda.synchronize()
    print("total", time.time() - t0)


if __name__ == "__main__":
    main()
