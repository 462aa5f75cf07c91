"""Candidate scoring worker: one user against a fixed page of candidates per request."""
import collections
import random
import time

import torch
import torch.nn as nn

PAGE = 1200
CARDS = (4000, 900, 120, 48)
DIM = 24


class CrossUnit(nn.Module):
    def __init__(self, width, rank=4):
        super().__init__()
        self.v = nn.Linear(width, rank, bias=False)
        self.u = nn.Linear(rank, width)
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x0, x):
        gate = torch.sigmoid(self.u(self.v(x)))
        y = x0 * gate * self.scale + x
        return y * torch.tanh(nn.functional.softplus(y))


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(c, DIM) for c in CARDS)
        width = DIM * (len(CARDS) + 1)
        self.user = nn.Linear(64, DIM)
        self.cross = nn.ModuleList(CrossUnit(width) for _ in range(6))
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, 1)

    def forward(self, user, cand):
        cols = [t(cand[:, i]) for i, t in enumerate(self.tables)]
        cols.append(self.user(user).expand(cand.shape[0], -1))
        x0 = torch.cat(cols, dim=1)
        x = x0
        for unit in self.cross:
            x = unit(x0, x)
        return self.out(self.norm(x)).squeeze(-1)


class Worker:
    def __init__(self):
        torch.manual_seed(5)
        self.model = Scorer().eval()
        self.score = torch.compile(self.model)
        self.stats = collections.deque(maxlen=4096)

    def warm_up(self):
        for _ in range(3):
            user, cand = make_request()
            self.score(user, cand)
        torch.compiler.set_stance("eager_on_recompile")

    @torch.inference_mode()
    def handle(self, user, cand, k=20):
        begin = time.monotonic()
        scores = self.score(user, cand)
        top = torch.topk(scores, k)
        ids = top.indices.tolist()
        self.stats.append(time.monotonic() - begin)
        return ids


def make_request():
    user = torch.randn(1, 64)
    cand = torch.stack([torch.randint(0, c, (PAGE,)) for c in CARDS], dim=1)
    return user, cand


def main():
    worker = Worker()
    worker.warm_up()
    requests = [make_request() for _ in range(16)]
    shown = 0
    for n in range(240):
        ids = worker.handle(*random.choice(requests))
        if n % 60 == 0:
            shown += 1
            print(f"request {n}: best {ids[:5]}")
    lat = sorted(worker.stats)
    print(f"p95 {lat[int(0.95 * len(lat))] * 1e3:.2f} ms, p50 {lat[len(lat) // 2] * 1e3:.2f} ms")


if __name__ == "__main__":
    main()
