"""Behaviour segmentation of seal dives with a hidden Markov model.

Depth, speed and light are summarised per five-minute window; every behaviour
has a Gaussian signature, and signatures and transitions are learned by
maximising the likelihood of whole dives.
"""
import os
import time

import torch
from torch import nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(21)

STATES = 64
WINDOWS = 12
CHANNELS = 6
DIVES = 128
STEPS = int(os.environ.get("STEPS", "4000"))


def advance(alpha, log_trans):
    """One step of the forward recursion: sum over the previous state."""
    return torch.logsumexp(alpha.unsqueeze(2) + log_trans, dim=1)


class DiveHMM(nn.Module):
    def __init__(self):
        super().__init__()
        self.start = nn.Parameter(torch.zeros(STATES))
        self.trans = nn.Parameter(0.5 * torch.randn(STATES, STATES))
        self.mean = nn.Parameter(torch.randn(STATES, CHANNELS))
        self.log_std = nn.Parameter(torch.full((STATES, CHANNELS), 0.3))

    def emission(self, dives):
        prec = torch.exp(-2.0 * self.log_std)
        const = (0.5 * prec * self.mean.square() + self.log_std).sum(1)
        return dives @ (prec * self.mean).t() - 0.5 * dives.square() @ prec.t() - const

    def forward(self, dives):
        scores = self.emission(dives)
        log_trans = F.log_softmax(self.trans, dim=1)
        alpha = F.log_softmax(self.start, dim=0) + scores[:, 0]
        for t in range(1, WINDOWS):
            alpha = advance(alpha, log_trans) + scores[:, t]
        return -torch.logsumexp(alpha, dim=1).mean() / WINDOWS


def recorded_dives(n):
    sets = []
    for _ in range(n):
        depth = torch.randn(DIVES, WINDOWS, 1).cumsum(1)
        rest = torch.randn(DIVES, WINDOWS, CHANNELS - 1)
        sets.append(torch.cat([depth, rest + 0.2 * depth], dim=2))
    return sets


def main():
    hmm = DiveHMM()
    likelihood = torch.compile(hmm)
    opt = torch.optim.Adam(hmm.parameters(), lr=2e-3, fused=True)
    dives = recorded_dives(8)
    started = time.perf_counter()
    for step in range(STEPS):
        loss = likelihood(dives[step % len(dives)])
        loss.backward()
        opt.step()
        opt.zero_grad()
        if step % 500 == 0:
            print(f"{step:5d}  nll {loss.item():.4f}  {time.perf_counter() - started:.1f}s")


if __name__ == "__main__":
    main()
