"""Complex Ginzburg-Landau turbulence on a periodic square, finite differences, RK4 in time."""
import os
import time
import torch

torch.manual_seed(11)
dev = torch.device("cuda")
N = 2048
H = 0.6
DT = 0.02
B, C = 0.5, -1.3


def laplacian(a):
    return (torch.roll(a, 1, 0) + torch.roll(a, -1, 0) + torch.roll(a, 1, 1) + torch.roll(a, -1, 1) - 4.0 * a) / (H * H)


def rhs(a):
    power = a * a.conj()
    return a + (1 + 1j * B) * laplacian(a) - (1 + 1j * C) * power * a


def rk4(a):
    k1 = rhs(a)
    k2 = rhs(a + 0.5 * DT * k1)
    k3 = rhs(a + 0.5 * DT * k2)
    k4 = rhs(a + DT * k3)
    return a + DT / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)


def main():
    advance = torch.compile(rk4)
    field = 0.1 * torch.randn(N, N, dtype=torch.complex64, device=dev)
    started = time.time()
    for it in range(int(os.environ.get("STEPS", "8000"))):
        field = advance(field)
        if it % 250 == 0:
            amp = field.abs()
            print(f"{it:6d}  <|A|> {amp.mean().item():.5f}  min|A| {amp.min().item():.2e}  {time.time() - started:.1f}s",
                  flush=True)


if __name__ == "__main__":
    main()
