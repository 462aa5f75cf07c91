"""Bank of one-pole smoothers run over short blocks of many channels."""
import os
import time
import torch

torch.manual_seed(6)

CHANNELS = 20_000
BLOCK = 48
BLOCKS = 420
BLOCKS = int(os.environ.get("BLOCKS", BLOCKS))


def smooth_block(x, state, a):
    out = torch.zeros_like(x)
    for t in range(BLOCK):
        state = a * state + (1 - a) * x[:, t]
        out[:, t] = state
    return out, state


def envelope(y):
    return y.abs().amax(dim=1)


def main():
    run = torch.compile(smooth_block)
    a = torch.rand(CHANNELS) * 0.5 + 0.45
    state = torch.zeros(CHANNELS)
    pool = [torch.randn(CHANNELS, BLOCK) for _ in range(5)]
    peak = torch.zeros(CHANNELS)
    lap = []
    for b in range(BLOCKS):
        x = pool[b % len(pool)]
        t0 = time.perf_counter()
        y, state = run(x, state, a)
        lap.append(time.perf_counter() - t0)
        peak = torch.maximum(peak * 0.999, envelope(y))
        if b % 100 == 0:
            print(f"block {b:4d} mean peak {peak.mean():.4f}")
    lap = sorted(lap[BLOCKS // 2:])
    print(f"processed {BLOCKS * BLOCK} samples per channel; peak {peak.max():.3f}")
    print(f"median block {lap[len(lap) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
