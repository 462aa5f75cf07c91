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


def rhs(u, v):
    power = u * u + v * v
    lu, lv = laplacian(u), laplacian(v)
    du = u + lu - B * lv - power * (u - C * v)
    dv = v + lv + B * lu - power * (v + C * u)
    return du, dv


def rk4(u, v):
    a1, b1 = rhs(u, v)
    a2, b2 = rhs(u + 0.5 * DT * a1, v + 0.5 * DT * b1)
    a3, b3 = rhs(u + 0.5 * DT * a2, v + 0.5 * DT * b2)
    a4, b4 = rhs(u + DT * a3, v + DT * b3)
    return (u + DT / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4),
            v + DT / 6.0 * (b1 + 2.0 * b2 + 2.0 * b3 + b4))


def main():
    advance = torch.compile(rk4)
    field = 0.1 * torch.randn(N, N, dtype=torch.complex64, device=dev)
    u, v = field.real.contiguous(), field.imag.contiguous()
    started = time.time()
    for it in range(int(os.environ.get("STEPS", "8000"))):
        u, v = advance(u, v)
        if it % 250 == 0:
            amp = torch.sqrt(u * u + v * v)
            print(f"{it:6d}  <|A|> {amp.mean().item():.5f}  min|A| {amp.min().item():.2e}  {time.time() - started:.1f}s",
                  flush=True)


if __name__ == "__main__":
    main()
