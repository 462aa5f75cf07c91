"""Damped wave equation on a torus, leapfrog in time, torch.roll stencils."""
import os
import time
import torch

torch.manual_seed(4)

N = 1024
STEPS = 500
STEPS = int(os.environ.get("STEPS", STEPS))


def laplace(u):
    return (torch.roll(u, 1, 0) + torch.roll(u, -1, 0)
            + torch.roll(u, 1, 1) + torch.roll(u, -1, 1) - 4 * u)


class Wave:
    def __init__(self, n, c=0.4, damp=1e-3):
        self.now = torch.zeros(n, n)
        self.old = torch.zeros(n, n)
        self.c2 = c * c
        self.damp = damp
        self.advance = torch.compile(self._advance)

    def _advance(self, now, old, src):
        acc = self.c2 * laplace(now)
        new = (2 - self.damp) * now - (1 - self.damp) * old + acc
        return new + src

    def step(self, src):
        new = self.advance(self.now, self.old, src)
        self.old, self.now = self.now, new


def main():
    wave = Wave(N)
    drops = []
    for _ in range(4):
        s = torch.zeros(N, N)
        i, j = torch.randint(50, N - 50, (2,)).tolist()
        s[i - 3:i + 3, j - 3:j + 3] = 0.5
        drops.append(s)
    quiet = torch.zeros(N, N)
    spent = []
    for k in range(STEPS):
        src = drops[(k // 25) % 4] if k % 25 == 0 else quiet
        t = time.perf_counter()
        wave.step(src)
        spent.append(time.perf_counter() - t)
        if k % 100 == 99:
            print(f"step {k + 1}: energy {wave.now.square().mean():.3e}")
    spent = sorted(spent[STEPS // 2:])
    print(f"wave step {spent[len(spent) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
