"""Scores batches of comment embeddings the way the serving process does."""
import argparse
from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass
class ServingStats:
    handles: list = field(default_factory=list)

    def attach(self, module):
        self.handles.append(module.register_forward_pre_hook(self._on_call))

    @staticmethod
    def _on_call(module, inputs):
        pass


class Scorer(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.proj = nn.Linear(width, 96)
        self.gate = nn.Parameter(torch.randn(96) * 0.1)
        self.temps = nn.Parameter(torch.linspace(0.5, 2.0, 4))
        self.head = nn.Linear(96, 6)

    def forward(self, x):
        h = self.proj(x)
        for t in self.temps.unbind():
            u = t * h + self.gate
            h = h * (0.5 + 0.5 * u / (1.0 + u.abs()))
            h = h + 0.1 * h.clamp(-1.0, 1.0) - 0.01 * h * h.abs()
        return torch.sigmoid(self.head(h))


def embeddings(count, seed):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(count, 32, generator=g)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=8600)
    args = ap.parse_args()
    torch.manual_seed(1)
    scorer = Scorer().eval()
    stats = ServingStats()
    for layer in (scorer.proj, scorer.head):
        stats.attach(layer)
    serve = torch.compile(scorer)

    pool = embeddings(8192, seed=6)
    flagged = 0
    with torch.no_grad():
        for step in range(args.steps):
            lo = (step * 2048) % 8192
            scorer.proj.requests_seen = getattr(scorer.proj, 'requests_seen', 0) + 1
            scores = serve(pool[lo:lo + 2048])
            flagged += int((scores[:, 0] > 0.6).sum())
            if step % 200 == 0:
                print(f"{step:6d} flagged so far {flagged}")
    print("requests", scorer.proj.requests_seen, "flagged", flagged)


if __name__ == "__main__":
    main()
