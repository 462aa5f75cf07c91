"""Decode the position of an animal on a linear track from over-dispersed spike counts."""
import os
import time

import torch

torch.manual_seed(3)

CELLS = 180
BINS = 48
WINDOW = 1500
MAX_COUNT = 400
STEPS = int(os.environ.get("STEPS", "5000"))
LOG = 200


def place_fields():
    centres = torch.linspace(0, 1, CELLS)
    grid = torch.linspace(0, 1, BINS)
    width = 0.04 + 0.05 * torch.rand(CELLS)
    return 1.5 + 60.0 * torch.exp(-0.5 * ((grid[:, None] - centres) / width) ** 2)


class TrackDecoder:
    def __init__(self):
        self.rates = place_fields()
        self.log_rates = self.rates.log()
        self.total = self.rates.sum(1)
        self.ks = torch.arange(MAX_COUNT, dtype=torch.float32)

    def log_coef(self, disp):
        k = self.ks
        return torch.lgamma(k + 1.0) + torch.lgamma(disp) - torch.lgamma(k + disp) - 0.1 * torch.digamma(k + disp)

    def evidence(self, counts, gain, table):
        x = counts.float()
        norm = table[counts].sum(1)
        ll = x @ self.log_rates.T + (x.sum(1, keepdim=True)) * torch.log(gain)
        ll = ll - gain * self.total - norm[:, None]
        post = torch.softmax(ll, dim=1)
        return post, torch.logsumexp(ll, dim=1)


decoder = TrackDecoder()
evidence = torch.compile(decoder.evidence)


def simulate(n_sessions=6):
    out = []
    for _ in range(n_sessions):
        where = torch.randint(0, BINS, (WINDOW,))
        c = torch.poisson(decoder.rates[where]).long().clamp_(max=MAX_COUNT - 1)
        out.append((where, c))
    return out


def main():
    sessions = simulate()
    gain = torch.tensor(1.0)
    disp = torch.tensor(25.0)
    t0 = time.perf_counter()
    with torch.no_grad():
        for step in range(1, STEPS + 1):
            where, counts = sessions[step % len(sessions)]
            post, ev = evidence(counts, gain, decoder.log_coef(disp))
            err = (post.argmax(1) - where).abs().float().mean()
            if step % LOG == 0:
                dt = (time.perf_counter() - t0) / LOG * 1e3
                print(f"step {step} error {err.item():.3f} bins evidence {ev.mean().item():.2f} {dt:.3f} ms/step")
                t0 = time.perf_counter()


if __name__ == "__main__":
    main()
