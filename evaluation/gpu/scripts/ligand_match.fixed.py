"""Learns to match ligand embeddings with pocket embeddings (random stand-ins for both)."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

STEPS = int(os.environ.get("STEPS", "3000"))
WARMUP = 10
PAIRS = 8192
FEATURES = 256
HIDDEN = 64
RELATIONS = 48

torch.set_float32_matmul_precision("high")
torch.manual_seed(1)
device = torch.device("cuda")


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(FEATURES, 512), nn.SiLU(),
            nn.Linear(512, 512), nn.SiLU(),
            nn.Linear(512, HIDDEN), nn.LayerNorm(HIDDEN),
        )

    def forward(self, x):
        return self.net(x)


class Matcher(nn.Module):
    def __init__(self):
        super().__init__()
        self.ligand = Tower()
        self.pocket = Tower()
        self.interact = nn.Bilinear(HIDDEN, HIDDEN, RELATIONS)
        self.affinity = nn.Sequential(
            nn.LayerNorm(RELATIONS), nn.Linear(RELATIONS, 256), nn.SiLU(), nn.Linear(256, 1))

    def forward(self, ligand, pocket):
        left = self.ligand(ligand)
        right = self.pocket(pocket)
        w = self.interact
        mixed = (left @ w.weight.permute(1, 0, 2).reshape(HIDDEN, -1)).view(-1, RELATIONS, HIDDEN)
        relations = (mixed * right.unsqueeze(1)).sum(-1) + w.bias
        return self.affinity(relations).squeeze(-1)


model = Matcher().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)


@torch.compile
def loss_fn(ligand, pocket, target):
    return F.smooth_l1_loss(model(ligand, pocket), target)


def make_batch():
    ligand = torch.randn(PAIRS, FEATURES, device=device)
    pocket = torch.randn(PAIRS, FEATURES, device=device)
    target = (ligand[:, :32] * pocket[:, :32]).mean(1)
    return ligand, pocket, target


batches = [make_batch() for _ in range(8)]


def train_step(i):
    optimizer.zero_grad(set_to_none=True)
    loss = loss_fn(*batches[i % len(batches)])
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
