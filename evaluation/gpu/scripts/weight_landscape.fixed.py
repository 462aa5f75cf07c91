"""Scans the loss along random directions in weight space."""
import os
import os
import time
import torch
import torch.nn as nn

DEV = os.environ.get("DEVICE", "cuda")
torch.manual_seed(1)

DEPTH, DIM, BATCH = 24, 128, 64
POINTS = 110
POINTS = int(os.environ.get("POINTS", POINTS))
EVALS = 3


def sync():
    if DEV == "cuda":
        torch.cuda.synchronize()


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, 2 * dim)
        self.down = nn.Linear(2 * dim, dim)

    def forward(self, x):
        return x + self.down(torch.nn.functional.silu(self.up(self.norm(x))))


def build():
    return nn.Sequential(*[Block(DIM) for _ in range(DEPTH)], nn.Linear(DIM, 10)).to(DEV)


def direction(sd):
    return {k: torch.randn_like(v) * v.abs().mean() for k, v in sd.items()}


def main():
    model = build().eval().requires_grad_(False)
    fast = torch.compile(model, mode="reduce-overhead")
    home = {k: v.clone() for k, v in model.state_dict().items()}
    d = direction(home)
    data = [torch.randn(BATCH, DIM, device=DEV) for _ in range(EVALS)]
    labels = torch.randint(0, 10, (BATCH,), device=DEV)
    trail = []
    laps = []
    with torch.no_grad():
        for n in range(POINTS):
            a = (n - POINTS / 2) / POINTS
            point = {k: home[k] + a * d[k] for k in home}
            sync()
            t0 = time.perf_counter()
            model.load_state_dict(point)
            loss = 0.0
            for x in data:
                loss += nn.functional.cross_entropy(fast(x), labels).item()
            sync()
            laps.append(time.perf_counter() - t0)
            trail.append((loss / EVALS, point))
            if n % 20 == 0:
                print(f"alpha {a:+.2f} loss {trail[-1][0]:.4f}")
    best = min(trail, key=lambda t: t[0])
    print(f"best loss {best[0]:.4f}, head norm {best[1][f'{DEPTH}.weight'].norm():.3f}")
    laps = sorted(laps[POINTS // 2:])
    print(f"median point {laps[len(laps) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
