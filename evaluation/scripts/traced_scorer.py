"""Ranking service with a gated cross-feature scorer."""
import os
import time
import torch
import torch.nn as nn

torch.manual_seed(12)

USERS, CANDS, DIM = 24, 400, 96
REQUESTS = 240
REQUESTS = int(os.environ.get("REQUESTS", REQUESTS))


class CrossGate(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.a = nn.Parameter(torch.randn(dim) * 0.3)
        self.b = nn.Parameter(torch.randn(dim) * 0.3)

    def forward(self, x):
        g = torch.sigmoid(x * self.a + self.b)
        y = x * g + torch.sin(x) * (1 - g)
        return y * torch.rsqrt(y.square().mean(-1, keepdim=True) + 1e-6)


class Scorer(nn.Module):
    def __init__(self, dim, depth=5):
        super().__init__()
        self.layers = nn.ModuleList(CrossGate(dim) for _ in range(depth))
        self.out = nn.Linear(dim, 1)

    def forward(self, user, cand):
        x = torch.tanh(user[:, None] * cand)
        for layer in self.layers:
            x = x + layer(x)
        return self.out(x).squeeze(-1)


def load_model():
    model = Scorer(DIM).eval()
    example = (torch.randn(USERS, DIM), torch.randn(USERS, CANDS, DIM))
    with torch.no_grad():
        frozen = torch.jit.trace(model, example)
    return frozen


def main():
    scorer = torch.compile(load_model())
    users = [torch.randn(USERS, DIM) for _ in range(8)]
    cands = [torch.randn(USERS, CANDS, DIM) for _ in range(3)]
    lat = []
    clicks = 0
    with torch.no_grad():
        for r in range(REQUESTS):
            t0 = time.perf_counter()
            s = scorer(users[r % 8], cands[r % 3])
            lat.append(time.perf_counter() - t0)
            best = s.topk(5, dim=1).indices
            clicks += int((best[:, 0] < CANDS // 10).sum())
            if r % 60 == 0:
                print(f"request {r}: mean score {s.mean():.4f}")
    lat = sorted(lat[REQUESTS // 2:])
    print(f"clicks {clicks} / {REQUESTS * USERS}")
    print(f"p50 {lat[len(lat) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
