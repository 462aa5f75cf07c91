"""Gaussian copula over the hourly output of neighbouring wind farms.

Every farm gets a learnable log-logistic marginal; the dependence between the
farms is a low-rank-plus-diagonal correlation.  The script fits both by maximum
likelihood on (synthetic) hourly power readings.
"""
import os
import math
import time

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(11)

FARMS = 24
RANK = 4
BATCH = 8192
STEPS = int(os.environ.get("STEPS", "4000"))
SQRT2 = math.sqrt(2.0)


class Marginals(nn.Module):
    """Log-logistic distribution per farm."""

    def __init__(self, farms):
        super().__init__()
        self.loc = nn.Parameter(torch.zeros(farms))
        self.log_scale = nn.Parameter(torch.full((farms,), 0.3))

    def forward(self, log_power):
        slope = torch.exp(self.log_scale)
        t = (log_power - self.loc) * slope
        u = torch.sigmoid(t)
        log_pdf = self.log_scale + torch.log(u * (1.0 - u) + 1e-9) - log_power
        return u, log_pdf


class Copula(nn.Module):
    def __init__(self, farms, rank):
        super().__init__()
        self.marginals = Marginals(farms)
        self.factor = nn.Parameter(0.2 * torch.randn(farms, rank))

    def correlation(self):
        cov = self.factor @ self.factor.t() + torch.eye(self.factor.shape[0])
        d = torch.rsqrt(torch.diagonal(cov))
        return cov * d[:, None] * d[None, :]

    def forward(self, log_power, chol_inv, logdet):
        u, log_pdf = self.marginals(log_power)
        u = u.clamp(1e-4, 1.0 - 1e-4)
        z = torch.special.ndtri(u)
        white = z @ chol_inv.t()
        log_copula = 0.5 * (z.square() - white.square()).sum(-1) - logdet
        return -(log_pdf.sum(-1) + log_copula).mean()


def synthetic_hours(n_batches):
    mix = torch.randn(FARMS, FARMS) / FARMS ** 0.5
    batches = []
    for _ in range(n_batches):
        common = torch.randn(BATCH, FARMS)
        batches.append(0.6 * (common @ mix) + 0.3 * torch.randn(BATCH, FARMS))
    return batches


def main():
    model = Copula(FARMS, RANK)
    nll = torch.compile(model)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3, fused=True)
    hours = synthetic_hours(6)
    started = time.perf_counter()
    for step in range(STEPS):
        if step % 50 == 0:
            with torch.no_grad():
                chol = torch.linalg.cholesky(model.correlation())
                chol_inv = torch.linalg.inv(chol)
                logdet = torch.log(torch.diagonal(chol)).sum()
        loss = nll(hours[step % len(hours)], chol_inv, logdet)
        loss.backward()
        opt.step()
        opt.zero_grad()
        if step % 500 == 0:
            print(f"{step:5d}  nll {loss.item():.4f}  {time.perf_counter() - started:.1f}s")


if __name__ == "__main__":
    main()
