"""Heat diffusion on a random mesh with edge weights that drift in time."""
import os
import time
import torch

torch.manual_seed(8)

NODES = 20_000
EDGES = 100_000
FEATS = 32
STEPS = 220
STEPS = int(os.environ.get("STEPS", STEPS))


class Mesh:
    def __init__(self):
        self.src = torch.randint(0, NODES, (EDGES,))
        self.dst = torch.randint(0, NODES, (EDGES,))
        self.len = torch.rand(EDGES) + 0.5
        deg = torch.bincount(self.dst, minlength=NODES).float()
        self.inv_deg = 1.0 / deg.clamp(min=1)


def diffuse(x, src, dst, length, inv_deg, t):
    w = torch.exp(-length * t)
    flux = (x[src] - x[dst]) * w[:, None]
    acc = torch.zeros_like(x).index_add(0, dst, flux)
    return x + 0.2 * acc * inv_deg[:, None]


def main():
    mesh = Mesh()
    step = torch.compile(diffuse)
    x = torch.randn(NODES, FEATS)
    lap = []
    for k in range(STEPS):
        t = torch.tensor(1.0 + 0.01 * k)
        tic = time.perf_counter()
        x = step(x, mesh.src, mesh.dst, mesh.len, mesh.inv_deg, t)
        lap.append(time.perf_counter() - tic)
        if k % 50 == 0:
            print(f"{k:4d} variance {x.var().item():.5f}")
    lap = sorted(lap[STEPS // 2:])
    print(f"final spread {(x.max() - x.min()).item():.4f}")
    print(f"median step {lap[len(lap) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
