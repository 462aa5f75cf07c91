"""Overdispersion of fish counts on transects: a random-walk sampler on a negative binomial."""
import os
import math
import time
import torch

torch.manual_seed(5)

SITES, VISITS, SPECIES = 120, 24, 90
MOST = 400


def survey():
    mean = torch.exp(torch.randn(SPECIES) * 0.8 + 1.5)
    rate = torch._standard_gamma(torch.full((SITES, VISITS, SPECIES), 1.8)) * mean / 1.8
    return torch.poisson(rate).long().clamp(max=MOST)


def log_posterior(counts, ladder, log_r, log_mu):
    r = log_r.exp()
    rungs = torch.lgamma(ladder + r) - torch.lgamma(r) - torch.lgamma(ladder + 1.0)
    return finish(counts, rungs, log_r, log_mu)


@torch.compile
def finish(counts, rungs, log_r, log_mu):
    r = log_r.exp()
    mu = log_mu.exp()
    stay = r * (r.log() - torch.log(r + mu))
    climb = log_mu - torch.log(r + mu)
    per_site = rungs[counts] + stay + counts * climb
    prior = -0.5 * (log_r ** 2 + 0.1 * log_mu.square().sum())
    return per_site.sum() + prior


def main():
    counts = survey()
    ladder = torch.arange(MOST + 1, dtype=torch.float32)
    log_r = torch.tensor(0.0)
    log_mu = (counts.float().mean((0, 1)) + 0.1).log()
    now = log_posterior(counts, ladder, log_r, log_mu)
    kept, trace = 0, []
    start = time.time()
    for step in range(int(os.environ.get("STEPS", "4000"))):
        new_r = log_r + 0.01 * torch.randn(())
        new_mu = log_mu + 0.001 * torch.randn(SPECIES)
        then = log_posterior(counts, ladder, new_r, new_mu)
        if math.log(torch.rand(()).item() + 1e-12) < (then - now).item():
            log_r, log_mu, now = new_r, new_mu, then
            kept += 1
        trace.append(log_r.item())
        if step % 400 == 399:
            recent = sum(trace[-400:]) / 400
            print(f"{step + 1:5d}  r {math.exp(recent):.4f}  accepted {kept / (step + 1):.3f}  {time.time() - start:.1f}s")


if __name__ == "__main__":
    main()
