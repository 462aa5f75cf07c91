"""Straightens paths through the latent space of a weather-state decoder (pullback metric)."""
import os
import time

import torch
import torch.nn as nn
from torch.func import jacfwd, vmap

STEPS = int(os.environ.get("STEPS", "3000"))
WARMUP = 10
PATHS = int(os.environ.get("PATHS", "128"))
KNOTS = 64
LATENT = 3
HIDDEN = 256
STATE = 192

torch.set_float32_matmul_precision("high")
torch.manual_seed(6)
device = torch.device("cuda")

decoder = nn.Sequential(
    nn.Linear(LATENT, HIDDEN), nn.Tanh(),
    nn.Linear(HIDDEN, HIDDEN), nn.Tanh(),
    nn.Linear(HIDDEN, HIDDEN), nn.Tanh(),
    nn.Linear(HIDDEN, STATE),
).to(device)
decoder.requires_grad_(False)


def metric(points):
    """Pullback of the Euclidean metric of the state space, one 3 x 3 matrix a point."""
    j = vmap(jacfwd(decoder))(points)
    return torch.einsum("nsa,nsb->nab", j, j)


def relax(paths, rate):
    """One relaxation of the inner knots, weighted with the local metric; also the path energy."""
    points = paths.reshape(-1, LATENT)
    g = metric(points).view(PATHS, KNOTS, LATENT, LATENT)
    steps = paths[:, 1:] - paths[:, :-1]
    middle = 0.5 * (g[:, 1:] + g[:, :-1])
    pull = (middle * steps.unsqueeze(-2)).sum(-1)
    energy = (pull * steps).sum((1, 2))
    force = pull[:, 1:] - pull[:, :-1]
    stiffness = middle.diagonal(dim1=-2, dim2=-1).sum(-1, keepdim=True)
    weight = stiffness[:, 1:] + stiffness[:, :-1] + 1e-6
    inner = paths[:, 1:-1] + rate * force / weight
    return torch.cat([paths[:, :1], inner, paths[:, -1:]], dim=1), energy


relax = torch.compile(relax)


def new_paths():
    a = torch.randn(PATHS, 1, LATENT, device=device)
    b = torch.randn(PATHS, 1, LATENT, device=device)
    t = torch.linspace(0, 1, KNOTS, device=device).view(1, -1, 1)
    return (1 - t) * a + t * b


paths = new_paths()

with torch.no_grad():
    for _ in range(WARMUP):
        relax(paths, 0.2)

    start = STEPS // 2
    for step in range(STEPS):
        if step == start:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        paths, energy = relax(paths, 0.2)
        if step % 500 == 0:
            print(f"step {step:5d}  mean energy {energy.mean().item():.6f}")

torch.cuda.synchronize()
elapsed = time.perf_counter() - t0
print(f"ms per step: {1e3 * elapsed / (STEPS - start):.3f}")
