"""Soft-sphere cluster dynamics with a screened pair force."""
import os
import torch

torch.set_num_threads(1)
torch.manual_seed(4)

STEPS = int(os.environ.get("STEPS", "37000"))
BODIES = 1536
DT = 1e-3


def push(px, py, pz, vx, vy, vz, charge):
    dx = px[:, None] - px[None, :]
    dy = py[:, None] - py[None, :]
    dz = pz[:, None] - pz[None, :]
    r2 = dx * dx + dy * dy + dz * dz + 0.01
    inv = torch.rsqrt(r2)
    f = charge[None, :] * torch.exp(-0.5 * r2) * inv * inv * inv
    vx = vx * 0.999 + DT * (f * dx).sum(dim=1)
    vy = vy * 0.999 + DT * (f * dy).sum(dim=1)
    vz = vz * 0.999 + DT * (f * dz).sum(dim=1)
    return px + DT * vx, py + DT * vy, pz + DT * vz, vx, vy, vz


push = torch.compile(push)

state = [torch.randn(BODIES) for _ in range(3)] + [torch.zeros(BODIES) for _ in range(3)]
charge = torch.rand(BODIES) + 0.5

with torch.no_grad():
    for step in range(STEPS):
        state = push(*state, charge)

print(f"spread {torch.stack(state[:3]).std().item():.5f} speed {torch.stack(state[3:]).abs().mean().item():.5f}")
