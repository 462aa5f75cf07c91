"""A pool of Hodgkin-Huxley neurons coupled through its mean potential."""
import argparse
import time

import torch


def rate(x, scale):
    """x / (1 - exp(-x / scale)) with its limit at zero."""
    z = x / scale
    small = z.abs() < 1e-4
    return torch.where(small, scale * (1.0 + 0.5 * z), x / (1.0 - torch.exp(-torch.where(small, 1.0, z))))


def advance(v, m, h, n, drive, dt=0.01, coupling=0.3):
    pull = coupling * (v.mean() - v)
    am, bm = 0.1 * rate(v + 40.0, 10.0), 4.0 * torch.exp(-(v + 65.0) / 18.0)
    ah, bh = 0.07 * torch.exp(-(v + 65.0) / 20.0), torch.sigmoid((v + 35.0) / 10.0)
    an, bn = 0.01 * rate(v + 55.0, 10.0), 0.125 * torch.exp(-(v + 65.0) / 80.0)
    sodium = 120.0 * m * m * m * h * (v - 50.0)
    potassium = 36.0 * (n * n) * (n * n) * (v + 77.0)
    leak = 0.3 * (v + 54.387)
    v = v + dt * (drive + pull - sodium - potassium - leak)
    m = m + dt * (am * (1.0 - m) - bm * m)
    h = h + dt * (ah * (1.0 - h) - bh * h)
    n = n + dt * (an * (1.0 - n) - bn * n)
    return v, m, h, n


class Pool:
    def __init__(self, count, seed):
        g = torch.Generator().manual_seed(seed)
        self.state = (
            -65.0 + 4.0 * torch.randn(count, generator=g),
            torch.full((count,), 0.053),
            torch.full((count,), 0.596),
            torch.full((count,), 0.318),
        )
        self.drive = 9.0 + 3.0 * torch.rand(count, generator=g)
        self.run = torch.compile(advance)

    def tick(self):
        self.state = self.run(*self.state, self.drive)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=60000)
    ap.add_argument("--count", type=int, default=49152)
    args = ap.parse_args()

    began = time.perf_counter()
    with torch.inference_mode():
        pool = Pool(args.count, 1)
        for i in range(args.steps):
            pool.tick()
            if i % 4000 == 3999:
                v = pool.state[0]
                print(f"{i + 1}: mean {v.mean().item():.2f} mV, firing {(v > 0).float().mean().item():.3f}, "
                      f"{time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
