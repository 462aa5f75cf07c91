"""Score documents against queries; both towers are compiled."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class Tower(nn.Module):
    def __init__(self, features, width=128, out=64):
        super().__init__()
        self.a = nn.Linear(features, width)
        self.b = nn.Linear(width, width)
        self.c = nn.Linear(width, out)

    def forward(self, x):
        h = F.gelu(self.a(x))
        h = h + torch.tanh(self.b(h)) * torch.sigmoid(h)
        return F.normalize(self.c(h), dim=-1)


class Searcher:
    def __init__(self):
        self.queries = torch.compile(Tower(48).eval())
        self.documents = torch.compile(Tower(96, out=64).eval(), mode="default")

    @torch.no_grad()
    def rank(self, queries, documents, k=10):
        left = self.queries(queries)
        right = self.documents(documents)
        return torch.topk(left @ right.T, k, dim=-1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--searches", type=int, default=60000)
    args = ap.parse_args()
    torch.manual_seed(2)
    searcher = Searcher()
    queries, documents = torch.randn(128, 48), torch.randn(512, 96)
    for _ in range(args.searches):
        best = searcher.rank(queries, documents)
    print("best score", best.values.max().item())


if __name__ == "__main__":
    main()
