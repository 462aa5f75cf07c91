"""Ranks candidate lists of varying length for search queries."""
import os
import random
import time

import torch
import torch.nn as nn

STEPS = int(os.environ.get("STEPS", 16000))
torch.set_num_threads(1)


class Ranker(nn.Module):
    def __init__(self, dim=96):
        super().__init__()
        self.item = nn.Linear(dim, dim)
        self.temp = nn.Parameter(torch.tensor(0.3))
        self.mix = nn.Parameter(torch.randn(3, dim) * 0.1)

    def forward(self, query, cand):
        c = self.item(cand)
        q = query.unsqueeze(0)
        near = torch.exp(-(c - q).square() * self.temp)
        cross = torch.tanh(c * q) * torch.sigmoid(c + q)
        diff = torch.sqrt((c - q).square() + 1e-4)
        feats = near * self.mix[0] + cross * self.mix[1] + torch.log1p(diff) * self.mix[2]
        return feats.sum(-1).log_softmax(0)


def main():
    torch.manual_seed(0)
    random.seed(0)
    ranker = torch.compile(Ranker().eval(), dynamic=True)
    every = max(1, STEPS // 10)
    mrr, t0, s0 = 0.0, None, 0
    with torch.inference_mode():
        ranker(torch.randn(96), torch.randn(1024, 96))
        torch.compiler.set_stance("eager_on_recompile")
        for step in range(STEPS):
            if step == 2:
                t0, s0 = time.perf_counter(), step
            n = random.randint(700, 1300)
            score = ranker(torch.randn(96), torch.randn(n, 96))
            mrr += 1.0 / (1 + int((score > score[0]).sum()))
            if step > 2 and step % every == 0:
                ms = (time.perf_counter() - t0) / (step - s0) * 1e3
                print(f"{step} queries: mrr {mrr / (step + 1):.4f}  {ms:.3f} ms/step")
                t0, s0 = time.perf_counter(), step


if __name__ == "__main__":
    main()
