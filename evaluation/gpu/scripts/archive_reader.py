"""One decoding step of a reader that attends, with grouped key/value heads, to
the encoded memory of a long document archive."""
import os
import time
import torch
from torch import nn
import torch.nn.functional as F

STEPS = int(os.environ.get("STEPS", "6000"))
device = "cuda"
BATCH, MEMORY, LAYERS = 16, 8192, 2
Q_HEADS, KV_HEADS, HEAD_DIM = 32, 4, 128
DIM = Q_HEADS * HEAD_DIM

torch.manual_seed(14)


def spread_heads(t):
    b, h, n, d = t.shape
    r = Q_HEADS // KV_HEADS
    return t[:, :, None].expand(b, h, r, n, d).reshape(b, h * r, n, d)


class MemoryRead(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(DIM)
        self.q = nn.Linear(DIM, DIM, bias=False)
        self.o = nn.Linear(DIM, DIM, bias=False)
        self.register_buffer("k_mem", torch.randn(BATCH, KV_HEADS, MEMORY, HEAD_DIM))
        self.register_buffer("v_mem", torch.randn(BATCH, KV_HEADS, MEMORY, HEAD_DIM))

    def forward(self, x):
        q = self.q(self.norm(x)).view(BATCH, Q_HEADS, 1, HEAD_DIM)
        k, v = spread_heads(self.k_mem), spread_heads(self.v_mem)
        a = F.scaled_dot_product_attention(q, k, v)
        return x + self.o(a.reshape(BATCH, DIM))


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.reads = nn.ModuleList([MemoryRead() for _ in range(LAYERS)])

    def forward(self, x):
        for read in self.reads:
            x = read(x)
        return x


reader = Reader().to(device=device, dtype=torch.bfloat16).eval()
read_step = torch.compile(reader)
tokens = [torch.randn(BATCH, DIM, device=device, dtype=torch.bfloat16) for _ in range(8)]

half = STEPS // 2
t0 = 0.0
for step in range(STEPS):
    if step == half:
        torch.cuda.synchronize()
        t0 = time.perf_counter()
    with torch.no_grad():
        out = read_step(tokens[step % 8])
torch.cuda.synchronize()
x = (time.perf_counter() - t0) * 1e3 / (STEPS - half)
print(f"ms per step {x:.4f}")
result = out
