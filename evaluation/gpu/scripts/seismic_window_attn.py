"""Encoder layer for long seismic traces: every sample attends to the last
WINDOW samples only."""
import os
import time
import torch
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

STEPS = int(os.environ.get("STEPS", "8000"))
device = "cuda"
BATCH, LENGTH, HEADS, HEAD_DIM = 4, 8192, 8, 64
WINDOW = 512
DIM = HEADS * HEAD_DIM

torch.manual_seed(8)


def in_window(b, h, q_idx, kv_idx):
    return (q_idx >= kv_idx) & (q_idx - kv_idx < WINDOW)


def window_score(score, b, h, q_idx, kv_idx):
    return torch.where(in_window(b, h, q_idx, kv_idx), score, -float("inf"))


class TraceLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(DIM)
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.proj = nn.Linear(DIM, DIM)

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, n, 3, HEADS, HEAD_DIM).permute(2, 0, 3, 1, 4)
        a = flex_attention(q, k, v, score_mod=window_score)
        return x + self.proj(a.transpose(1, 2).reshape(b, n, DIM))


layer = TraceLayer().to(device=device, dtype=torch.bfloat16).eval()
encode = torch.compile(layer, fullgraph=True)
traces = torch.randn(BATCH, LENGTH, DIM, device=device, dtype=torch.bfloat16)

with torch.no_grad():
    half = STEPS // 2
    t0 = 0.0
    for step in range(STEPS):
        if step == half:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        out = encode(traces)
torch.cuda.synchronize()
x = (time.perf_counter() - t0) * 1e3 / (STEPS - half)
print(f"ms per step {x:.4f}")
result = out
