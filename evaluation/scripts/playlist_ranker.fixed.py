"""Rank tracks for listeners with a gated two-tower model."""
import os
import time

import torch
import torch.nn as nn

STEPS = int(os.environ.get("STEPS", "4000"))


class Ranker(nn.Module):
    def __init__(self, dim=96):
        super().__init__()
        self.user = nn.Embedding(5000, dim)
        self.track = nn.Embedding(20000, dim)
        self.gate = nn.Parameter(torch.randn(dim))
        self.bias = nn.Parameter(torch.zeros(20000))

    def affinity(self, u, t):
        d = u - t
        g = torch.sigmoid(self.gate * d) * torch.tanh(u) + torch.exp(-d * d)
        return (g * torch.nn.functional.softplus(t) - 0.1 * d.abs()).sum(-1)

    def rank(self, users, tracks):
        u = self.user(users).unsqueeze(1)
        t = self.track(tracks)
        return self.affinity(u, t) + self.bias[tracks]

    def forward(self, users, tracks):
        return torch.sigmoid(self.rank(users, tracks))


def main():
    torch.manual_seed(5)
    torch.set_num_threads(1)
    ranker = Ranker().eval()
    ranker.rank = torch.compile(ranker.rank)
    t0 = time.perf_counter()
    hits = 0
    with torch.inference_mode():
        for step in range(STEPS):
            users = torch.randint(0, 5000, (32,))
            tracks = torch.randint(0, 20000, (32, 100))
            score = ranker.rank(users, tracks)
            best = score.topk(10, dim=1).indices
            hits += int((best < 10).sum())
            if (step + 1) % 100 == 0:
                t1 = time.perf_counter()
                print(f"{step + 1} lists, hits {hits}, {(t1 - t0) / 100 * 1e3:.2f} ms/step", flush=True)
                t0 = t1


if __name__ == "__main__":
    main()
