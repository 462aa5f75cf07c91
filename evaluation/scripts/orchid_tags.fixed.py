"""Scores orchid scans; the per-scan normaliser is looked up in a memo so that views of one scan share it."""
import os
import time
import torch
import torch.nn as nn

torch.manual_seed(19)


class Scorer(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.lift = nn.Linear(48, width)
        self.mix = nn.Parameter(torch.rand(3, width))
        self.out = nn.Linear(width, 5)
        self.memo = {}

    def spread(self, scan):
        return scan.std(dim=0, keepdim=True) + 1e-3

    def forward(self, scan):
        h = self.lift(scan / self.spread(scan))
        for row in self.mix:
            h = h + torch.tanh(h * row) * torch.sigmoid(h) - 0.1 * torch.sin(h) * torch.exp(-h.abs())
        return torch.log_softmax(self.out(h), -1)


def main():
    model = Scorer().eval().requires_grad_(False)
    score = torch.compile(model)
    tally = torch.zeros(5)
    start = time.time()
    for n in range(int(os.environ.get("STEPS", "7000"))):
        scan = torch.randn(512, 48) * (1.0 + n % 3)
        tally += score(scan).mean(0)
        if n % 700 == 699:
            print(f"scan {n + 1}  scores {[round(v, 3) for v in (tally / (n + 1)).tolist()]}  {time.time() - start:.1f}s")


if __name__ == "__main__":
    main()
