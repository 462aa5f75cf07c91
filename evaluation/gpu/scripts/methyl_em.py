"""EM for a two-component Beta mixture per CpG site (hypo / hyper-methylated) over many cells."""
import os
import time

import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))

CELLS = 64 if SMALL else 4096
SITES = 512 if SMALL else 16384


def simulate():
    gen = torch.Generator(device=device).manual_seed(3)
    state = torch.rand(CELLS, SITES, device=device, generator=gen) < 0.35
    noise = torch.randn(CELLS, SITES, device=device, generator=gen)
    logit = torch.where(state, 1.6, -1.4) + 0.7 * noise
    return torch.sigmoid(logit).clamp_(1e-3, 1 - 1e-3)


def log_norm(mu, phi):
    return torch.lgamma(phi) - torch.lgamma(mu * phi) - torch.lgamma((1 - mu) * phi)


@torch.compile
def e_step(beta, mu_lo, phi_lo, mu_hi, phi_hi, log_odds):
    log_x = torch.log(beta)
    log_1mx = torch.log1p(-beta)
    lo = (mu_lo * phi_lo - 1) * log_x + ((1 - mu_lo) * phi_lo - 1) * log_1mx
    hi = (mu_hi * phi_hi - 1) * log_x + ((1 - mu_hi) * phi_hi - 1) * log_1mx
    lo = lo + log_norm(mu_lo, phi_lo)
    hi = hi + log_norm(mu_hi, phi_hi)
    return torch.sigmoid(hi - lo + log_odds)


@torch.compile
def m_step(beta, resp, mu_lo, mu_hi):
    n_hi = resp.sum(dim=0)
    s_hi = (resp * beta).sum(dim=0)
    s_all = beta.sum(dim=0)
    n_lo = CELLS - n_hi
    new_hi = (s_hi + 0.8) / (n_hi + 1.0)
    new_lo = (s_all - s_hi + 0.2) / (n_lo + 1.0)
    mu_hi = 0.5 * mu_hi + 0.5 * new_hi
    mu_lo = 0.5 * mu_lo + 0.5 * new_lo
    frac = n_hi.mean() / CELLS
    return mu_lo, mu_hi, torch.log(frac / (1 - frac))


def sync():
    if device.type == "cuda":
        torch.cuda.synchronize()


@torch.no_grad()
def main():
    beta = simulate()
    mu_lo = torch.full((SITES,), 0.25, device=device)
    mu_hi = torch.full((SITES,), 0.75, device=device)
    phi_lo = torch.linspace(4.0, 12.0, SITES, device=device)
    phi_hi = torch.linspace(10.0, 5.0, SITES, device=device)
    log_odds = torch.zeros((), device=device)
    half = STEPS // 2
    t0 = None
    for step in range(STEPS):
        if step == half:
            sync()
            t0 = time.perf_counter()
        resp = e_step(beta, mu_lo, phi_lo, mu_hi, phi_hi, log_odds)
        mu_lo, mu_hi, log_odds = m_step(beta, resp, mu_lo, mu_hi)
    sync()
    ms = (time.perf_counter() - t0) * 1e3 / (STEPS - half)
    print(f"mu_lo={mu_lo.mean().item():.4f} mu_hi={mu_hi.mean().item():.4f} log_odds={log_odds.item():.4f}")
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()
