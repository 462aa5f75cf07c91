"""Ranks candidate plant sheets of a herbarium for photographs sent in by visitors."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

STEPS = int(os.environ.get("STEPS", "3000"))
WARMUP = 10
SHEETS = int(os.environ.get("SHEETS", str(8 * 1024 * 1024)))
WIDTH = 256
PHOTOS = 2048
CANDIDATES = 64

torch.set_float32_matmul_precision("high")
torch.manual_seed(2)
device = torch.device("cuda")


class Ranker(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Sequential(nn.Linear(WIDTH, 512), nn.GELU(), nn.Linear(512, WIDTH))
        self.key = nn.Linear(WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.scale = nn.Parameter(torch.tensor(10.0))

    def forward(self, sheets, photos, candidates):
        rows = F.embedding(candidates, sheets)
        keys = F.normalize(self.key(self.norm(rows)), dim=-1)
        queries = F.normalize(self.query(photos), dim=-1)
        scores = self.scale * torch.bmm(keys, queries.unsqueeze(-1)).squeeze(-1)
        weights = scores.float().softmax(-1)
        best = weights.argmax(-1)
        return best, weights


def build_sheets():
    sheets = torch.empty(SHEETS, WIDTH, device=device, dtype=torch.bfloat16)
    for part in sheets.chunk(16):
        part.normal_()
    return sheets


sheets = build_sheets()
ranker = Ranker().to(device, torch.bfloat16).eval()
rank = torch.compile(ranker, mode="reduce-overhead")

requests = [
    (torch.randn(PHOTOS, WIDTH, device=device, dtype=torch.bfloat16),
     torch.randint(0, SHEETS, (PHOTOS, CANDIDATES), device=device))
    for _ in range(8)
]

with torch.no_grad():
    for i in range(WARMUP):
        photos, candidates = requests[i % len(requests)]
        rank(sheets, photos, candidates)

    confidence = torch.zeros((), device=device)
    start = STEPS // 2
    for step in range(STEPS):
        if step == start:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        photos, candidates = requests[step % len(requests)]
        best, weights = rank(sheets, photos, candidates)
        confidence.lerp_(weights.amax(-1).mean(), 0.01)
        if step % 500 == 0:
            print(f"step {step:5d}  confidence {confidence.item():.4f}")

torch.cuda.synchronize()
elapsed = time.perf_counter() - t0
print(f"ms per step: {1e3 * elapsed / (STEPS - start):.3f}")
