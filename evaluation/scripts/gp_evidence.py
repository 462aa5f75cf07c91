"""Gaussian-process hyper-parameter fit by the exact marginal likelihood."""
import os
import math
import time
import torch

torch.manual_seed(30)

N, D, STEPS = 700, 3, 130
STEPS = int(os.environ.get("STEPS", STEPS))


def evidence(log_len, log_amp, log_noise, x, y):
    z = x / log_len.exp()
    n2 = (z * z).sum(1)
    d2 = (n2[:, None] + n2[None, :] - 2 * z @ z.T).clamp(min=0)
    k = log_amp.exp() * torch.exp(-0.5 * d2)
    k = k + (log_noise.exp() + 1e-4) * torch.eye(N, dtype=x.dtype)
    chol = torch.linalg.cholesky(k)
    alpha = torch.cholesky_solve(y[:, None], chol)[:, 0]
    logdet = 2 * chol.diagonal().log().sum()
    return 0.5 * (y @ alpha) + 0.5 * logdet + 0.5 * N * math.log(2 * math.pi)


def toy():
    x = torch.rand(N, D, dtype=torch.float64) * 4
    y = torch.sin(2 * x[:, 0]) + 0.5 * torch.cos(3 * x[:, 1]) + 0.1 * torch.randn(N, dtype=torch.float64)
    return x, y - y.mean()


def main():
    x, y = toy()
    log_len = torch.zeros(D, dtype=torch.float64, requires_grad=True)
    log_amp = torch.zeros((), dtype=torch.float64, requires_grad=True)
    log_noise = torch.full((), -2.0, dtype=torch.float64, requires_grad=True)
    theta = [log_len, log_amp, log_noise]
    opt = torch.optim.Adam(theta, lr=0.05)
    fn = torch.compile(evidence)
    lap = []
    for k in range(STEPS):
        t0 = time.perf_counter()
        nll = fn(*theta, x, y)
        opt.zero_grad()
        nll.backward()
        opt.step()
        lap.append(time.perf_counter() - t0)
        if k % 25 == 0:
            print(f"step {k:4d} nll {nll.item():.3f} noise {log_noise.exp().item():.4f}")
    lap = sorted(lap[STEPS // 2:])
    print("length scales", [round(v, 3) for v in log_len.exp().tolist()])
    print(f"median step {lap[len(lap) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
