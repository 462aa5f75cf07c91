"""Orthogonal factor of large feature covariances by an odd polynomial iteration."""
import os
import time

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
dtype = torch.bfloat16 if device == "cuda" else torch.float32

ROWS, COLS = 6144, 8192
ITERATIONS = 5
COEF = (3.4445, -4.7750, 2.0315)
BUDGET_S = float(os.environ.get("BUDGET_S", "28.0"))


@torch.compile
def polar(m):
    a, b, c = COEF
    x = m.to(dtype)
    x = x / (x.float().norm() + 1e-6).to(dtype)
    for _ in range(ITERATIONS):
        gram = x @ x.mT
        poly = b * gram + c * (gram @ gram)
        x = a * x + poly @ x
    return x


@torch.compile
def deviation(q):
    g = (q @ q.mT).float()
    return (g.diagonal() - 1.0).abs().mean()


class Whitener:
    """Keeps a momentum-averaged feature map and its orthogonal factor."""

    def __init__(self):
        self.buf = torch.zeros(ROWS, COLS, device=device)

    @torch.no_grad()
    def push(self, feature_map):
        self.buf.lerp_(feature_map, 0.1)
        return polar(self.buf)


def main():
    torch.manual_seed(6)
    maps = [torch.randn(ROWS, COLS, device=device) for _ in range(3)]
    w = Whitener()
    for m in maps:
        q = w.push(m)
    print("deviation", round(deviation(q).item(), 3))

    n = 0
    t0 = time.perf_counter()
    while time.perf_counter() - t0 < BUDGET_S:
        for _ in range(20):
            q = w.push(maps[n % 3])
            n += 1
        dev = deviation(q).item()
        if n % 200 == 0:
            print(f"{n}: deviation {dev:.3f}")
    took = time.perf_counter() - t0
    flop = ITERATIONS * (2 * ROWS * ROWS * COLS * 2 + 2 * ROWS**3)
    print(f"{1e3 * took / n:.2f} ms per map, {flop * n / took / 1e12:.0f} TFLOP/s")


if __name__ == "__main__":
    main()
