"""Online scoring of candidate batches with a deep residual ranker; a smoothed
score per slot is kept between requests."""
import os
import time
import torch
from torch import nn

STEPS = int(os.environ.get("STEPS", "15000"))
device = "cuda"
SLOTS, DIM, DEPTH = 32, 256, 40

torch.manual_seed(21)
torch.set_float32_matmul_precision("high")


class RankBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(DIM)
        self.up = nn.Linear(DIM, DIM)
        self.down = nn.Linear(DIM, DIM)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Ranker(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([RankBlock() for _ in range(DEPTH)])
        self.score = nn.Linear(DIM, 1)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.score(x).squeeze(-1)


ranker = Ranker().to(device).eval()
score_batch = torch.compile(ranker, mode="reduce-overhead")
requests = [torch.randn(SLOTS, DIM, device=device) for _ in range(8)]
smoothed = torch.zeros(SLOTS, device=device)

half = STEPS // 2
t0 = 0.0
for step in range(STEPS):
    if step == half:
        torch.cuda.synchronize()
        t0 = time.perf_counter()
    with torch.no_grad():
        scores = score_batch(requests[step % 8])
    smoothed = 0.9 * smoothed + 0.1 * scores.detach()
torch.cuda.synchronize()
x = (time.perf_counter() - t0) * 1e3 / (STEPS - half)
print(f"ms per step {x:.4f}")
result = smoothed
