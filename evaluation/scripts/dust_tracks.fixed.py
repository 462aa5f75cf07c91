import os
import torch

torch.set_num_threads(1)
torch.manual_seed(41)

STEPS = int(os.environ.get("STEPS", "80000"))
PARTICLES = 60_000
DT = 0.002


@torch.compile
def push(pos, vel, field):
    radius = pos.square().sum(dim=0, keepdim=True).sqrt()
    normal = pos / (radius + 1e-6)
    inward = (vel * normal).sum(dim=0, keepdim=True)
    bounced = torch.where((radius > 1) & (inward > 0), vel - 2 * inward * normal, vel)
    spun = bounced + DT * torch.linalg.cross(bounced, field.expand_as(bounced), dim=0)
    return pos + DT * spun, spun


pos = (torch.randn(PARTICLES, 3) * 0.4).t().contiguous()
vel = torch.randn(PARTICLES, 3).t().contiguous()
field = torch.tensor([[0.0], [0.3], [1.0]])

for step in range(STEPS):
    pos, vel = push(pos, vel, field)

print("energy", vel.square().sum().item() / PARTICLES, "spread", pos.abs().mean().item())
