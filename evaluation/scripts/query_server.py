"""Passage re-ranking service: a fixed scorer answers groups of candidate passages."""
import os
import time
from dataclasses import dataclass, field

import torch
from torch import nn

DIM, LENGTH, CANDIDATES = 128, 32, 60
STEPS = int(os.environ.get("STEPS", "4500"))


@dataclass
class Stats:
    served: int = 0
    spent: list = field(default_factory=list)

    def note(self, n, seconds):
        self.served += n
        self.spent.append(seconds)

    def line(self):
        recent = sorted(self.spent[-50:])
        return f"served {self.served:6d}  p50 {recent[len(recent) // 2] * 1e3:.1f} ms"


class Interaction(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q, self.k = nn.Linear(dim, dim, bias=False), nn.Linear(dim, dim, bias=False)
        self.scale = nn.Parameter(torch.tensor(0.1))
        self.kernels = nn.Parameter(torch.linspace(-0.9, 1.0, 11))
        self.out = nn.Linear(11, 1)

    def forward(self, query, passage, mask):
        q = nn.functional.normalize(self.q(query), dim=-1)
        k = nn.functional.normalize(self.k(passage), dim=-1)
        sim = q @ k.transpose(1, 2)
        bumps = torch.exp(-((sim[..., None] - self.kernels) ** 2) / (2 * self.scale ** 2))
        bumps = (bumps * mask[:, None, :, None]).sum(2)
        pooled = torch.log(bumps.clamp_min(1e-6)).mean(1)
        return torch.tanh(self.out(pooled)).squeeze(-1)


class Ranker:
    def __init__(self):
        self.net = Interaction(DIM).eval()
        self.score = torch.compile(self.net)
        self.stats = Stats()

    def warm_up(self):
        query = torch.zeros(1, LENGTH, DIM)
        for _ in range(3):
            self.score(query, query, torch.ones(1, LENGTH))
        torch.compiler.set_stance("eager_on_recompile")

    def rank(self, query, passages, mask):
        t0 = time.perf_counter()
        scores = self.score(query.expand(len(passages), -1, -1), passages, mask)
        order = scores.argsort(descending=True)
        self.stats.note(len(passages), time.perf_counter() - t0)
        return order, scores


@torch.inference_mode()
def main():
    torch.manual_seed(5)
    ranker = Ranker()
    ranker.warm_up()
    pool = torch.randn(400, LENGTH, DIM)
    lengths = torch.randint(10, LENGTH + 1, (400, 1))
    masks = (torch.arange(LENGTH)[None] < lengths).float()
    hits = 0.0
    for request in range(STEPS):
        rows = torch.randint(0, len(pool), (CANDIDATES,))
        query = pool[rows[:1]] + 0.3 * torch.randn(1, LENGTH, DIM)
        order, _ = ranker.rank(query, pool[rows], masks[rows])
        hits += float(order[0] == 0)
        if request % 225 == 0:
            print(f"request {request:5d}  top-1 {hits / (request + 1):.2f}  {ranker.stats.line()}")
    print(ranker.stats.line())


if __name__ == "__main__":
    main()
