"""Generalised Waring model of plankton counts, random-walk Metropolis over sites.

The log-normaliser depends only on the three parameters of a site; the counts
enter through sufficient statistics that were computed when the data was read.
"""
import math
import os
import time

import torch

small = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = int(os.environ.get("STEPS", 8000))
SITES = 60 if small else 600
HAULS = 200_000 if small else 20_000_000


def read_hauls():
    gen = torch.Generator().manual_seed(5)
    site = torch.randint(0, SITES, (HAULS,), generator=gen).to(device)
    effort = torch.rand(HAULS, generator=gen, dtype=torch.float64).to(device)
    return site, effort


def log_normaliser(a, k, r):
    top = torch.lgamma(a + r) + torch.lgamma(k + r)
    bottom = torch.lgamma(r) + torch.lgamma(a + k + r)
    shape = torch.lgamma(a) + torch.lgamma(k) - torch.lgamma(a + k)
    return top - bottom - shape


@torch.compile
def log_posterior(a, k, r, site, effort):
    per_site = log_normaliser(a, k, r)
    score = per_site[site] * effort
    prior = -(a.log() ** 2 + k.log() ** 2 + (r - 2.0) ** 2).sum()
    return score.mean() * 1000.0 + prior / SITES


@torch.no_grad()
def main():
    site, effort = read_hauls()
    torch.manual_seed(2)
    state = torch.rand(3, SITES, dtype=torch.float64, device=device) * 6 + 0.6
    current = log_posterior(*state, site, effort)
    accepted = torch.zeros((), device=device)
    began = time.perf_counter()
    for step in range(STEPS):
        proposal = state * torch.exp(0.02 * torch.randn_like(state))
        value = log_posterior(*proposal, site, effort)
        take = torch.log(torch.rand((), device=device, dtype=torch.float64)) < value - current
        state = torch.where(take, proposal, state)
        current = torch.where(take, value, current)
        accepted += take
        if step % 500 == 0:
            print(f"draw {step:5d} log posterior {current.item():.4f} "
                  f"accepted {accepted.item() / (step + 1):.2f} ({time.perf_counter() - began:.1f} s)")
    assert math.isfinite(current.item())


if __name__ == "__main__":
    main()
