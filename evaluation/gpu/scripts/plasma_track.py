"""Particles in a magnetic trap: many charged particles pushed by the Boris scheme, with diagnostics kept."""
import os
import time
import torch

torch.manual_seed(12)
dev = "cuda"
NP, DT = 16_000_000, 2e-3


class Trap:
    def __init__(self):
        self.x = torch.randn(3, NP, device=dev) * 0.1
        self.v = torch.randn(3, NP, device=dev)
        self.temps = []

    def field(self, x):
        px, py, pz = x[0], x[1], x[2]
        bz = 1.0 + 0.5 * pz * pz - 0.25 * (px * px + py * py)
        bx, by = -0.5 * px * pz, -0.5 * py * pz
        e = torch.stack((0.2 * torch.sin(px), 0.2 * torch.sin(py), -0.4 * torch.sin(pz)))
        return e, bx, by, bz

    @torch.compile
    def push(self):
        e, bx, by, bz = self.field(self.x)
        half = 0.5 * DT
        vm = self.v + half * e
        tx, ty, tz = half * bx, half * by, half * bz
        s = 2.0 / (1.0 + tx * tx + ty * ty + tz * tz)
        px = vm[0] + vm[1] * tz - vm[2] * ty
        py = vm[1] + vm[2] * tx - vm[0] * tz
        pz = vm[2] + vm[0] * ty - vm[1] * tx
        vp = torch.stack((vm[0] + s * (py * tz - pz * ty), vm[1] + s * (pz * tx - px * tz), vm[2] + s * (px * ty - py * tx)))
        self.v = vp + half * e
        self.x = self.x + DT * self.v
        self.temps.append((self.v * self.v).mean())


def main():
    trap = Trap()
    t0 = time.time()
    for it in range(int(os.environ.get("STEPS", "10000"))):
        trap.push()
        if it % 500 == 499:
            print(f"step {it + 1} T {trap.temps[-1].item():.6f} drift {(trap.temps[-1] - trap.temps[0]).item():+.2e} "
                  f"{time.time() - t0:.1f}s", flush=True)


if __name__ == "__main__":
    main()
