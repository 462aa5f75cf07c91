"""Forecasts the next sensor frame of a turbine from all earlier frames; a
small causal transformer trained in bf16."""
import os
import time
import torch
from torch import nn
import torch.nn.functional as F

STEPS = int(os.environ.get("STEPS", "800"))
device = "cuda"
BATCH, TOKENS, DIM, HEADS, LAYERS, SENSORS = 16, 1024, 1024, 16, 4, 128

torch.manual_seed(6)
torch.set_float32_matmul_precision("high")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.RMSNorm(DIM)
        self.qkv = nn.Linear(DIM, 3 * DIM, bias=False)
        self.proj = nn.Linear(DIM, DIM, bias=False)
        self.norm2 = nn.RMSNorm(DIM)
        self.gate = nn.Linear(DIM, 2 * DIM, bias=False)
        self.up = nn.Linear(DIM, 2 * DIM, bias=False)
        self.down = nn.Linear(2 * DIM, DIM, bias=False)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, HEADS, d // HEADS).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, n, d))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(SENSORS, DIM)
        self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
        self.norm = nn.RMSNorm(DIM)
        self.head = nn.Linear(DIM, SENSORS)

    def forward(self, frames, targets):
        x = self.embed(frames)
        for block in self.blocks:
            x = block(x)
        return F.mse_loss(self.head(self.norm(x)).float(), targets.float())


model = Forecaster().to(device=device, dtype=torch.bfloat16)
opt = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
train_loss = torch.compile(model)
runs = [torch.randn(BATCH, TOKENS + 1, SENSORS, device=device, dtype=torch.bfloat16) for _ in range(4)]
batches = [(t[:, :-1].contiguous(), t[:, 1:].contiguous()) for t in runs]

half = STEPS // 2
t0 = 0.0
for step in range(STEPS):
    if step == half:
        torch.cuda.synchronize()
        t0 = time.perf_counter()
    inputs, targets = batches[step % 4]
    loss = train_loss(inputs, targets)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
torch.cuda.synchronize()
x = (time.perf_counter() - t0) * 1e3 / (STEPS - half)
print(f"ms per step {x:.4f}")
result = loss.detach()
