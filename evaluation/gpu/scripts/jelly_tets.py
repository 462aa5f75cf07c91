"""Soft-tissue phantom: explicit neo-Hookean tetrahedra with a shear-wave source at one face."""
import os
import time

import torch

SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

TETS = 4000 if SMALL else 600_000
NODES = 500 if SMALL else 120_000
MU, LAM, DT = 2.0e3, 8.0e3, 2e-5


def inv_transpose(f, j):
    return torch.linalg.inv(f).mT


def volume_ratio(f):
    a, b, c = f.unbind(-1)
    return (torch.linalg.cross(a, b) * c).sum(-1)


@torch.compile
def advance(x, v, tets, rest_inv, rest_vol, inv_mass, drive):
    p = x[tets]
    edges = (p[:, 1:] - p[:, :1]).mT
    f = (edges.unsqueeze(-1) * rest_inv.unsqueeze(-3)).sum(-2)
    j = volume_ratio(f).clamp_min(0.05)
    fit = inv_transpose(f, j)
    stress = MU * (f - fit) + LAM * j.log()[:, None, None] * fit
    h = -(stress.unsqueeze(-2) * rest_inv.unsqueeze(-3)).sum(-1) * rest_vol[:, None, None]
    corner = h.mT
    apex = -corner.sum(1, keepdim=True)
    per_node = torch.cat([apex, corner], dim=1).reshape(-1, 3)
    force = torch.zeros_like(x).index_add_(0, tets.reshape(-1), per_node)
    v = (v + DT * (force * inv_mass[:, None] + drive)) * 0.9995
    return x + DT * v, v


def build():
    nodes = torch.rand(NODES, 3, device=device)
    base = torch.randint(0, NODES, (TETS, 1), device=device)
    tets = (base + torch.tensor([0, 1, 2, 3], device=device)) % NODES
    p = nodes[tets]
    d = (p[:, 1:] - p[:, :1]).mT
    ok = torch.det(d) > 0.02
    return nodes, tets[ok].contiguous(), torch.linalg.inv(d[ok]).contiguous(), torch.det(d[ok]) / 6


def main():
    torch.manual_seed(9)
    x, tets, rest_inv, rest_vol = build()
    v = torch.zeros_like(x)
    inv_mass = torch.full((NODES,), 0.5, device=device)
    mark = STEPS // 2
    with torch.no_grad():
        for step in range(STEPS):
            if step == mark:
                if device.type == "cuda":
                    torch.cuda.synchronize()
                t0 = time.perf_counter()
            drive = torch.zeros(3, device=device)
            drive[1] = 5.0 if step % 40 < 20 else -5.0
            x, v = advance(x, v, tets, rest_inv, rest_vol, inv_mass, drive)
    if device.type == "cuda":
        torch.cuda.synchronize()
    dt = (time.perf_counter() - t0) / (STEPS - mark)
    print(f"{tets.shape[0]} elements, rms velocity {v.square().mean().sqrt().item():.6f}")
    print(f"step_ms={dt * 1e3:.3f}")


if __name__ == "__main__":
    main()
