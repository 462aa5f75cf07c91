"""Beta-binomial scoring of a lichen survey: every photographed cell belongs to a site, and
gets the log-likelihood of its cover class under the site's current parameters."""
import os
import time

import torch

dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
STEPS = int(os.environ.get("STEPS", "300"))
SMALL = os.environ.get("SMALL") == "1"

SITES = 2500
CELLS = 20_000 if SMALL else 32_000_000


def site_logp(hits, tries, alpha, beta):
    """log BetaBinomial(hits | tries, alpha, beta), one number per site."""
    miss = tries - hits
    both = alpha + beta
    choose = torch.lgamma(tries + 1) - torch.lgamma(hits + 1) - torch.lgamma(miss + 1)
    top = torch.lgamma(hits + alpha) + torch.lgamma(miss + beta) - torch.lgamma(tries + both)
    return choose + top + torch.lgamma(both) - torch.lgamma(alpha)


def cell_scores(table, site, cover):
    """Scores of all the cells: the site's level and how much of the cell is covered."""
    return table[site] * cover


site_logp_c = torch.compile(site_logp)
cell_scores_c = torch.compile(cell_scores)


def score(hits, tries, alpha, beta, site, cover):
    table = site_logp_c(hits, tries, alpha, beta)
    return cell_scores_c(table, site, cover)


def survey(seed=17):
    g = torch.Generator(device=dev).manual_seed(seed)
    tries = torch.randint(20, 400, (SITES,), generator=g, device=dev).float()
    hits = (tries * torch.rand(SITES, generator=g, device=dev)).floor()
    site = torch.randint(0, SITES, (CELLS,), generator=g, device=dev)
    cover = torch.rand(CELLS, generator=g, device=dev)
    return hits, tries, site, cover


def main():
    hits, tries, site, cover = survey()
    alpha = torch.full((SITES,), 2.0, device=dev)
    beta = torch.full((SITES,), 3.0, device=dev)
    kernel = score
    drift = torch.linspace(-1e-3, 1e-3, SITES, device=dev)
    kept = None

    half, t0 = STEPS // 2, None
    with torch.no_grad():
        for k in range(STEPS):
            if k == half:
                if dev.type == "cuda":
                    torch.cuda.synchronize()
                t0 = time.perf_counter()
            alpha = alpha * (1.0 + drift)
            kept = kernel(hits, tries, alpha, beta, site, cover)
    if dev.type == "cuda":
        torch.cuda.synchronize()
    ms = (time.perf_counter() - t0) * 1e3 / (STEPS - half)
    print(f"mean score {kept.mean().item():.4f}  lowest {kept.min().item():.3f}")
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()
