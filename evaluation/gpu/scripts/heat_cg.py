"""Implicit heat conduction in a composite plate: conjugate gradients on a 5-point stencil, double precision."""
import os
import time
import torch

torch.manual_seed(3)
dev = "cuda"
N = 1024
DT = 0.02
TOL = 1e-9
MAXIT = 400

cond = 1.0 + 4.0 * torch.rand(N, N, device=dev, dtype=torch.float64)


@torch.compile
def implicit_step(u, k):
    kx = 0.5 * (k + torch.roll(k, 1, 0))
    kxp = torch.roll(kx, -1, 0)
    ky = 0.5 * (k + torch.roll(k, 1, 1))
    kyp = torch.roll(ky, -1, 1)
    x = u.clone()
    flux = (kxp * (torch.roll(x, -1, 0) - x) - kx * (x - torch.roll(x, 1, 0))
            + kyp * (torch.roll(x, -1, 1) - x) - ky * (x - torch.roll(x, 1, 1)))
    r = DT * 60.0 * flux
    p = r.clone()
    rs = (r * r).sum()
    n = 0
    for n in range(MAXIT):
        flux = (kxp * (torch.roll(p, -1, 0) - p) - kx * (p - torch.roll(p, 1, 0))
                + kyp * (torch.roll(p, -1, 1) - p) - ky * (p - torch.roll(p, 1, 1)))
        ap = p - DT * 60.0 * flux
        alpha = rs / (p * ap).sum()
        x = x + alpha * p
        r = r - alpha * ap
        rs_new = (r * r).sum()
        if rs_new.item() < TOL:
            break
        p = r + (rs_new / rs) * p
        rs = rs_new
    return x, n


def main():
    u = torch.zeros(N, N, device=dev, dtype=torch.float64)
    u[N // 4:N // 2, N // 4:N // 2] = 100.0
    t0 = time.time()
    for step in range(int(os.environ.get("STEPS", "2000"))):
        u[:, 0] = 20.0
        u, its = implicit_step(u, cond)
        if step % 100 == 0:
            torch.cuda.synchronize()
            print(f"step {step} iterations {its} mean {u.mean().item():.6f} {time.time() - t0:.1f}s", flush=True)


if __name__ == "__main__":
    main()
