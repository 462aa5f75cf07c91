"""Trains a causal transformer that predicts the next positions of ships in a harbour."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

STEPS = int(os.environ.get("STEPS", "3000"))
WARMUP = 10
BATCH = 16
LENGTH = 1024
FIELDS = 16
WIDTH = 768
HEADS = 12
HEAD = WIDTH // HEADS
LAYERS = 4

torch.set_float32_matmul_precision("high")
torch.manual_seed(8)
device = torch.device("cuda")


class RMSNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.square().mean(-1, keepdim=True) + 1e-5)
        return (y * self.weight.float()).to(x.dtype)


def rotate(x, cos, sin):
    a, b = x.float().chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1).to(x.dtype)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = RMSNorm(), RMSNorm()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate = nn.Linear(WIDTH, 2 * 2048, bias=False)
        self.down = nn.Linear(2048, WIDTH, bias=False)

    def forward(self, x, cos, sin):
        q, k, v = self.qkv(self.norm1(x)).view(BATCH, LENGTH, 3, HEADS, HEAD).permute(2, 0, 3, 1, 4)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(a.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH))
        g, u = self.gate(self.norm2(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(g) * u)


class Harbour(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(FIELDS, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = RMSNorm()
        self.leave = nn.Linear(WIDTH, FIELDS)
        angle = torch.outer(torch.arange(LENGTH).float(), 1e4 ** (-torch.arange(0, HEAD, 2) / HEAD))
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())

    def forward(self, tracks):
        x = self.enter(tracks)
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        ahead = self.leave(self.norm(x))
        return F.smooth_l1_loss(ahead[:, :-1].float(), tracks[:, 1:].float())


model = Harbour().to(device)
for p in model.parameters():
    p.data = p.data.bfloat16()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=True)
loss_fn = torch.compile(model)
batches = [torch.randn(BATCH, LENGTH, FIELDS, device=device).cumsum(1).mul(0.03).bfloat16()
           for _ in range(8)]


def train_step(i):
    optimizer.zero_grad(set_to_none=True)
    loss = loss_fn(batches[i % len(batches)])
    loss.backward()
    optimizer.step()
    return loss.detach()


for i in range(WARMUP):
    train_step(i)

start = STEPS // 2
for step in range(STEPS):
    if step == start:
        torch.cuda.synchronize()
        t0 = time.perf_counter()
    loss = train_step(step)
    if step % 500 == 0:
        print(f"step {step:5d}  loss {loss.item():.5f}")

torch.cuda.synchronize()
elapsed = time.perf_counter() - t0
print(f"ms per step: {1e3 * elapsed / (STEPS - start):.3f}")
