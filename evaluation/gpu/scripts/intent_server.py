"""Intent model served in small batches with mixed precision."""
import os
import time
import torch
from torch import nn
import torch.nn.functional as F

STEPS = int(os.environ.get("STEPS", "8000"))
device = "cuda"
BATCH, DIM, HIDDEN, DEPTH = 16, 4096, 16384, 6

torch.manual_seed(9)


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(DIM)
        self.up = nn.Linear(DIM, HIDDEN, bias=False)
        self.down = nn.Linear(HIDDEN, DIM, bias=False)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


with torch.device(device):
    model = nn.Sequential(*[Mixer() for _ in range(DEPTH)])
model = model.eval()
serve = torch.compile(model)
queries = [torch.randn(BATCH, DIM, device=device) for _ in range(8)]

with torch.no_grad(), torch.autocast(device, dtype=torch.bfloat16):
    half = STEPS // 2
    t0 = 0.0
    for step in range(STEPS):
        if step == half:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        out = serve(queries[step % 8])
torch.cuda.synchronize()
x = (time.perf_counter() - t0) * 1e3 / (STEPS - half)
print(f"ms per step {x:.4f}")
result = out
