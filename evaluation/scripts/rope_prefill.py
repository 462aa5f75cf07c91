"""Rotary-position prefill of query/key blocks for an attention service."""
import os
import time
import torch

torch.manual_seed(7)

B, HEADS, T, D = 4, 16, 512, 64
CALLS = 300
CALLS = int(os.environ.get("CALLS", CALLS))


def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


@torch.compile
def prefill(q, k, start, freq):
    pos = start + torch.arange(q.shape[2], dtype=torch.float32)
    ang = pos[:, None] * freq
    cos, sin = ang.cos(), ang.sin()
    q = rotate(q, cos, sin)
    k = rotate(k, cos, sin)
    return q * (D ** -0.5), k


def main():
    freq = 10_000.0 ** (-torch.arange(0, D, 2) / D)
    blocks = [(torch.randn(B, HEADS, T, D), torch.randn(B, HEADS, T, D)) for _ in range(3)]
    took = []
    start = 0
    check = 0.0
    for c in range(CALLS):
        q, k = blocks[c % 3]
        t0 = time.perf_counter()
        q2, k2 = prefill(q, k, start, freq)
        took.append(time.perf_counter() - t0)
        start += T
        if c % 60 == 0:
            check += (q2[0, 0, 5] @ k2[0, 0, 9]).item()
            print(f"call {c}: window starts at {start}")
    took = sorted(took[CALLS // 2:])
    print("check", round(check, 4))
    print(f"median prefill {took[len(took) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
