"""Run a whole-body balance policy at control rate for a batch of simulated robots."""
import os
import time

import torch
import torch.nn as nn

TICKS = int(os.environ.get("TICKS", "180000"))
ROBOTS = 64
STATE = 48
HID = 256
DEPTH = 10
DEV = "cuda"


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(STATE, HID)
        self.norms = nn.ModuleList([nn.LayerNorm(HID) for _ in range(DEPTH)])
        self.lins = nn.ModuleList([nn.Linear(HID, HID) for _ in range(DEPTH)])
        self.act = nn.Linear(HID, 12)

    def forward(self, s):
        x = torch.tanh(self.inp(s))
        for norm, lin in zip(self.norms, self.lins):
            x = x + nn.functional.elu(lin(norm(x)))
        return torch.tanh(self.act(x))


class Robots(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.randn(STATE, STATE) * 0.02)
        self.b = nn.Parameter(torch.randn(12, STATE) * 0.1)

    def forward(self, s, u):
        return 0.98 * s + 0.05 * torch.sin(s @ self.a + u @ self.b)


class Loop(nn.Module):
    def __init__(self):
        super().__init__()
        self.policy, self.world = Policy(), Robots()

    def forward(self, s):
        u = self.policy(s)
        nxt = self.world(s, u)
        return nxt, u.square().mean()


@torch.no_grad()
def main():
    torch.manual_seed(16)
    loop = Loop().to(DEV).eval()
    tick = torch.compile(loop, mode="reduce-overhead", fullgraph=True)
    s = torch.randn(ROBOTS, STATE, device=DEV)
    effort = torch.zeros((), device=DEV)
    t0 = time.time()
    for i in range(TICKS):
        nxt, e = tick(s)
        s.copy_(nxt)
        effort += e
        if i % 5000 == 0:
            print(f"tick {i} effort {effort.item() / (i + 1):.5f} {time.time() - t0:.1f}s")


if __name__ == "__main__":
    main()
