"""Portal-monitor spectroscopy: each vehicle's gamma spectrum is compared with a library of
isotope templates under a Poisson model and the alarm statistics are kept per lane."""
import os
import time
from collections import Counter

import torch

torch.set_num_threads(1)

CHANNELS = 1024
LIBRARY = 72
VEHICLES = 40
FLOOR = 0.05


def template_library(gen):
    """Photopeaks on a falling continuum, in expected counts per passage."""
    energy = torch.linspace(0.0, 3.0, CHANNELS)
    continuum = 9.0 * torch.exp(-energy / 0.7)
    lines = torch.rand(LIBRARY, 5, generator=gen) * 2.8 + 0.1
    heights = torch.rand(LIBRARY, 5, generator=gen) * 14.0
    width = 0.012 + 0.02 * torch.sqrt(lines)
    peaks = heights[:, :, None] * torch.exp(-0.5 * ((energy - lines[:, :, None]) / width[:, :, None]) ** 2)
    return continuum + peaks.sum(1) + FLOOR


class Matcher:
    def __init__(self, library, prior):
        self.rates = library
        self.log_rates = library.log()
        self.log_prior = prior.log()
        self.score = torch.compile(self._score)

    def _loglik(self, counts):
        norm = torch.lgamma(counts + 1.0)
        k = counts.unsqueeze(1)
        terms = k * self.log_rates - self.rates
        return terms.sum(-1) - norm.sum(-1, keepdim=True)

    def _score(self, counts):
        ll = self._loglik(counts)
        post = torch.log_softmax(ll + self.log_prior, dim=-1)
        best, idx = post.max(-1)
        evidence = torch.logsumexp(ll + self.log_prior, dim=-1)
        return idx, best.exp(), evidence


class Lane:
    def __init__(self, number, gen):
        self.number = number
        self.gen = gen
        self.alarms = Counter()
        self.evidence = 0.0
        self.passages = 0

    def record(self, idx, confidence, evidence):
        sure = confidence > 0.95
        self.alarms.update(idx[sure].tolist())
        self.evidence += evidence.sum().item()
        self.passages += idx.numel()

    def line(self):
        top = ", ".join(f"{i}:{n}" for i, n in self.alarms.most_common(3))
        return f"lane {self.number}: {self.passages} passages, evidence {self.evidence / self.passages:.1f}, top {top}"


def passages(library, gen, batches):
    out = []
    for _ in range(batches):
        which = torch.randint(0, LIBRARY, (VEHICLES,), generator=gen)
        out.append(torch.poisson(library[which], generator=gen))
    return out


@torch.no_grad()
def main():
    gen = torch.Generator().manual_seed(1896)
    library = template_library(gen)
    prior = torch.full((LIBRARY,), 1.0 / LIBRARY)
    matcher = Matcher(library, prior)
    spectra = passages(library, gen, 24)
    lanes = [Lane(i, gen) for i in range(4)]

    for s in spectra[:4]:
        matcher.score(s)

    rounds = int(os.environ.get("STEPS", "2400"))
    tic = time.perf_counter()
    for r in range(rounds):
        idx, conf, ev = matcher.score(spectra[r % len(spectra)])
        lanes[r % 4].record(idx, conf, ev)
    toc = time.perf_counter()

    for lane in lanes:
        print(lane.line())
    print(f"{(toc - tic) / rounds * 1e3:.3f} ms per round of {VEHICLES} vehicles")


if __name__ == "__main__":
    main()
