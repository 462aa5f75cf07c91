"""Score query/passage embedding pairs with a deep cross network, small batches, as a
search front end would call it."""
import argparse
import statistics
import time

import torch
from torch import nn


class CrossLayer(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.gate = nn.Linear(dim, hidden)
        self.up = nn.Linear(dim, hidden)
        self.down = nn.Linear(hidden, dim)

    def forward(self, x):
        z = self.norm(x)
        return x + self.down(nn.functional.silu(self.gate(z)) * self.up(z))


class Reranker(nn.Module):
    def __init__(self, dim=2048, hidden=8192, depth=12):
        super().__init__()
        self.join = nn.Linear(3 * dim, dim)
        self.layers = nn.Sequential(*[CrossLayer(dim, hidden) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.score = nn.Linear(dim, 1)

    def forward(self, query, passages):
        q = query.expand_as(passages)
        h = self.join(torch.cat([q, passages, q * passages], dim=-1))
        return self.score(self.norm(self.layers(h))).squeeze(-1)


class FrontEnd:
    def __init__(self, device, candidates):
        torch.manual_seed(0)
        torch.set_float32_matmul_precision("high")
        self.device, self.candidates = device, candidates
        self.model = Reranker().to(device).eval()
        self.run = torch.compile(self.model)
        self.index = nn.functional.normalize(torch.randn(200_000, 2048, device=device), dim=1)

    def answer(self, query_row):
        first = (query_row * 4801) % (len(self.index) - self.candidates)
        query = self.index[query_row : query_row + 1]
        passages = self.index[first : first + self.candidates]
        with torch.inference_mode(), torch.autocast("cuda", dtype=torch.bfloat16):
            scores = self.run(query, passages)
        return scores.float().topk(10).indices.tolist()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=16000)
    ap.add_argument("--candidates", type=int, default=32)
    args = ap.parse_args()
    device = "cuda"

    server = FrontEnd(device, args.candidates)
    server.answer(0)
    spent, hits = [], 0
    for i in range(args.steps):
        t0 = time.perf_counter()
        top = server.answer((i * 37) % 100_000)
        spent.append(time.perf_counter() - t0)
        hits += top[0]
    print(f"median {statistics.median(spent) * 1e3:.2f} ms, mean best rank {hits / args.steps:.2f}")


if __name__ == "__main__":
    main()
