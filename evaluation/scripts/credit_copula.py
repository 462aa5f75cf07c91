"""Loan-book loss simulation with a one-factor Gaussian copula and beta-shaped recoveries."""
import math
import os
import time

import torch

LOANS = 2500
PATHS = 48
SQRT2 = math.sqrt(2.0)


def quantile(u):
    return SQRT2 * torch.erfinv(2.0 * u - 1.0)


def cumulative(z):
    return 0.5 * (1.0 + torch.erf(z / SQRT2))


def sobol_stream(dim, seed):
    return torch.quasirandom.SobolEngine(dim, scramble=True, seed=seed)


@torch.compile
def portfolio_loss(u_idio, u_market, pd, loading, exposure, lgd):
    u_idio = u_idio.clamp(1e-6, 1.0 - 1e-6)
    u_market = u_market.clamp(1e-6, 1.0 - 1e-6)
    market = quantile(u_market)
    idio = quantile(u_idio)
    threshold = quantile(pd)
    asset = loading * market + torch.sqrt(1.0 - loading * loading) * idio
    hit = asset < threshold
    stress = cumulative(-market)
    severity = lgd + (1.0 - lgd) * 0.4 * stress
    loss = torch.where(hit, exposure * severity, torch.zeros_like(asset))
    return loss.sum(dim=1), hit.float().mean(dim=1)


def loan_book(generator):
    pd = 0.002 + 0.05 * torch.rand(1, LOANS, generator=generator) ** 3
    loading = 0.2 + 0.3 * torch.rand(1, LOANS, generator=generator)
    exposure = torch.exp(torch.randn(1, LOANS, generator=generator)) * 1e4
    lgd = 0.3 + 0.4 * torch.rand(1, LOANS, generator=generator)
    return pd, loading, exposure, lgd


def main():
    torch.set_num_threads(1)
    steps = int(os.environ.get("STEPS", "240"))
    generator = torch.Generator().manual_seed(21)
    book = loan_book(generator)
    market_engine = sobol_stream(1, seed=9)
    u_pool = [torch.rand(PATHS, LOANS, generator=generator) for _ in range(16)]
    losses, rates = [], []
    half = time.perf_counter()
    with torch.no_grad():
        for step in range(steps):
            if step == steps // 2:
                half = time.perf_counter()
            u_market = market_engine.draw(PATHS)
            loss, rate = portfolio_loss(u_pool[step % 16], u_market, *book)
            losses.append(loss)
            rates.append(rate)
    per_step = (time.perf_counter() - half) / max(1, steps - steps // 2)
    losses = torch.cat(losses)
    var99 = losses.quantile(0.99).item()
    print(f"expected {losses.mean().item():.0f}, 99% {var99:.0f}, default rate {torch.cat(rates).mean().item():.4f}")
    print(f"{per_step * 1e3:.3f} ms per step")


if __name__ == "__main__":
    main()
