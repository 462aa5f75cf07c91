"""Likelihood of a caterpillar tree of protein sequences while its branch lengths move."""
import os
import time

import torch

small = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = int(os.environ.get("STEPS", 8000))
BRANCHES, SITES, STATES = (16, 40, 20) if small else (96, 600, 20)


def exchange_rates():
    torch.manual_seed(13)
    s = torch.rand(STATES, STATES, dtype=torch.float64).triu(1)
    freq = torch.rand(STATES, dtype=torch.float64) + 0.2
    freq = freq / freq.sum()
    q = (s + s.T) * freq
    q.fill_diagonal_(0)
    q -= torch.diag(q.sum(1))
    q /= -(q.diagonal() * freq).sum()
    return q.to(device), freq.to(device)


@torch.compile
def site_log_likelihood(left, values, right, freq, lengths, tips):
    p = (left * torch.exp(values * lengths[:, None])[:, None, :]) @ right
    up = torch.bmm(tips, p.transpose(1, 2))
    joined = up.clamp_min(1e-30).log().sum(0)
    return torch.logsumexp(joined + freq.log(), dim=-1).sum()


@torch.no_grad()
def main():
    q, freq = exchange_rates()
    root = freq.sqrt()
    values, vectors = torch.linalg.eigh(root[:, None] * q / root)
    left, right = vectors / root[:, None], vectors.T * root
    tips = torch.nn.functional.one_hot(
        torch.randint(0, STATES, (BRANCHES, SITES), device=device), STATES).double() * 0.98 + 0.001
    lengths = torch.rand(BRANCHES, device=device, dtype=torch.float64) * 0.8 + 0.02
    current = site_log_likelihood(left, values, right, freq, lengths, tips)
    began = time.perf_counter()
    for step in range(STEPS):
        proposal = lengths * torch.exp(0.05 * torch.randn_like(lengths))
        value = site_log_likelihood(left, values, right, freq, proposal, tips)
        take = torch.rand((), device=device, dtype=torch.float64).log() < value - current
        lengths = torch.where(take, proposal, lengths)
        current = torch.where(take, value, current)
        if step % 500 == 0:
            print(f"draw {step:5d} log likelihood {current.item():.3f} tree length {lengths.sum().item():.3f} "
                  f"({time.perf_counter() - began:.1f} s)")


if __name__ == "__main__":
    main()
