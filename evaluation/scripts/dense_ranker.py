"""Bulk scoring of candidate embeddings with a plain wide network."""
import os
import time

import torch
import torch.nn as nn

torch.manual_seed(111)

DIM = 640
BATCH = 192
STEPS = int(os.environ.get("STEPS", "2000"))
LOG = 100


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(DIM, 1024),
            nn.ReLU(),
            nn.Linear(1024, 1024),
            nn.ReLU(),
            nn.Linear(1024, 128),
        )

    def forward(self, x):
        return self.body(x)


class Ranker(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = Tower()
        self.item = Tower()

    def forward(self, q, items):
        return self.query(q) @ self.item(items).T


def main():
    ranker = torch.compile(Ranker().eval())
    queries = [torch.randn(BATCH, DIM) for _ in range(4)]
    shelf = [torch.randn(BATCH, DIM) for _ in range(4)]
    seen = torch.zeros(BATCH)
    t0 = time.perf_counter()
    with torch.no_grad():
        for step in range(1, STEPS + 1):
            scores = ranker(queries[step % 4], shelf[(step // 4) % 4])
            seen += scores.amax(1)
            if step % LOG == 0:
                dt = (time.perf_counter() - t0) / LOG * 1e3
                print(f"page {step} best {seen.mean().item() / step:.4f} {dt:.3f} ms/step")
                t0 = time.perf_counter()


if __name__ == "__main__":
    main()
