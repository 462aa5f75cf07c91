"""Imagine short futures with a trained latent world model and score them for a planner.

The dynamics core is a wide residual MLP on the latent state; a planner step encodes nothing new, it
unrolls the core for a few control ticks on a handful of candidate plans and returns their value.
"""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

LATENT = 128 if SMALL else 6144
LAYERS = 2 if SMALL else 6
ACTION, PLANS, TICKS = 24, 32, 4


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(LATENT)
        self.fc = nn.Linear(LATENT, LATENT)

    def forward(self, z):
        return z + 0.3 * F.silu(self.fc(self.norm(z)))


class Dynamics(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.Linear(ACTION, LATENT)
        self.layers = nn.ModuleList(Residual() for _ in range(LAYERS))
        self.reward = nn.Linear(LATENT, 1)

    def forward(self, z, a):
        z = z + self.act(a)
        for layer in self.layers:
            z = layer(z)
        z = z.float()
        z = z * torch.rsqrt(z.square().mean(-1, keepdim=True) + 1e-6)
        return z, self.reward(z).float().squeeze(-1)


def main():
    torch.manual_seed(7)
    with torch.device(device):
        model = Dynamics()
    model = model.to(device).eval()
    core = torch.compile(model)
    z0 = torch.randn(PLANS, LATENT, device=device)
    mean = torch.zeros(TICKS, ACTION, device=device)
    mark = STEPS // 2
    with torch.no_grad():
        for step in range(STEPS):
            if step == mark:
                if device.type == "cuda":
                    torch.cuda.synchronize()
                t0 = time.perf_counter()
            plans = mean + 0.5 * torch.randn(PLANS, TICKS, ACTION, device=device)
            with torch.autocast(device.type, dtype=torch.bfloat16):
                z = z0
                value = torch.zeros(PLANS, device=device)
                for tick in range(TICKS):
                    z, r = core(z, plans[:, tick])
                    value = value + 0.97**tick * r
            w = torch.softmax(value * 2.0, dim=0)
            mean = 0.9 * mean + 0.1 * (w[:, None, None] * plans).sum(0)
    if device.type == "cuda":
        torch.cuda.synchronize()
    dt = (time.perf_counter() - t0) / (STEPS - mark)
    print(f"plan value {value.mean().item():.4f}")
    print(f"step_ms={dt * 1e3:.3f}")


if __name__ == "__main__":
    main()
