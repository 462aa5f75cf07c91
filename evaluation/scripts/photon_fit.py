"""Posterior over blackbody temperatures for a photon-counting spectrograph.

Tempered importance sampling: every round draws a population of candidate
(temperature, scale) pairs, scores them against the recorded counts of one
exposure and shrinks the proposal toward the good ones.
"""
import os
import time

import torch

CHANNELS = 1100
CANDIDATES = 320


def planck_rate(temperature, scale, wavelength, falloff):
    x = 1.4388 / (wavelength[None, :] * temperature[:, None])
    flux = falloff[None, :] / torch.expm1(x)
    return scale[:, None] * flux + 0.05


def log_likelihood(counts, rate):
    terms = counts[None, :] * torch.log(rate) - rate - torch.lgamma(counts + 1.0)[None, :]
    return terms.sum(dim=1)


class Scorer(torch.nn.Module):
    def __init__(self, wavelength):
        super().__init__()
        self.register_buffer("wavelength", wavelength)
        self.register_buffer("falloff", wavelength.pow(-5))

    def forward(self, temperature, scale, counts, beta):
        rate = planck_rate(temperature, scale, self.wavelength, self.falloff)
        ll = log_likelihood(counts, rate) * beta
        prior = -0.5 * ((temperature - 0.55) / 0.3).square()
        w = torch.softmax(ll + prior, dim=0)
        mean_t = (w * temperature).sum()
        mean_s = (w * scale).sum()
        spread = (w * (temperature - mean_t).square()).sum().sqrt()
        return mean_t, mean_s, spread


def exposures(wavelength, n, gen):
    for _ in range(n):
        t = 0.45 + 0.2 * torch.rand(1, generator=gen)
        rate = planck_rate(t, torch.tensor([6.0]), wavelength, wavelength.pow(-5))[0]
        yield t.item(), torch.poisson(rate, generator=gen)


def main():
    steps = int(os.environ.get("STEPS", "240"))
    gen = torch.Generator().manual_seed(11)
    wavelength = torch.linspace(0.4, 2.4, CHANNELS)
    scorer = torch.compile(Scorer(wavelength).eval())
    beta = torch.tensor(0.02)
    error, spread_sum, took = 0.0, 0.0, []

    with torch.no_grad():
        for truth, counts in exposures(wavelength, steps, gen):
            temperature = 0.3 + 0.5 * torch.rand(CANDIDATES, generator=gen)
            scale = 5.0 + 2.0 * torch.rand(CANDIDATES, generator=gen)
            start = time.perf_counter()
            mean_t, mean_s, spread = scorer(temperature, scale, counts, beta)
            took.append(time.perf_counter() - start)
            error += abs(mean_t.item() - truth)
            spread_sum += spread.item()

    took.sort()
    print(f"mean |dT| {error / steps:.4f}  mean spread {spread_sum / steps:.4f}")
    print(f"median scoring time {took[len(took) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
