"""Hillslope erosion on a height map: slope-dependent transport, smoothed over the neighbourhood."""
import os
import time

import torch

STEPS = int(os.environ.get("STEPS", "3500"))
SIZE = 384
WEIGHTS = (0.05, 0.1, 0.05, 0.1, 0.4, 0.1, 0.05, 0.1, 0.05)


def transport(height, rain):
    flow = torch.pow(height * 0.01 + 0.3, 1.37)
    flow = torch.atan(flow) * torch.sin(flow)
    n = height.shape[0]
    total = torch.zeros_like(height[1:-1, 1:-1])
    k = 0
    for dy in range(3):
        for dx in range(3):
            total = total + WEIGHTS[k] * flow[dy:n - 2 + dy, dx:n - 2 + dx]
            k += 1
    mid = height[1:-1, 1:-1]
    return mid + rain * (total - flow[1:-1, 1:-1])


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    advance = torch.compile(transport)
    height = torch.rand(SIZE, SIZE) * 90
    rain = torch.rand(SIZE - 2, SIZE - 2) * 0.01
    t0 = time.perf_counter()
    with torch.no_grad():
        for step in range(STEPS):
            inner = advance(height, rain)
            height[1:-1, 1:-1] = inner
            if (step + 1) % 100 == 0:
                t1 = time.perf_counter()
                print(f"year {step + 1}: mean height {height.mean():.3f}  {(t1 - t0) / 100 * 1e3:.2f} ms/step", flush=True)
                t0 = t1


if __name__ == "__main__":
    main()
