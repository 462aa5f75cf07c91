"""Label every return of a rotating lidar; scans differ in the number of returns."""
import os
import random
import time

import torch
import torch.nn as nn

SCANS = int(os.environ.get("SCANS", "2600"))
LOW, HIGH = 4000, 5300
WIDTH = 128
BLOCKS = 12
DEV = "cuda"


class GatedUnit(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.a = nn.Linear(width, width)
        self.b = nn.Linear(width, width)
        self.c = nn.Linear(width, width)

    def forward(self, x):
        h = self.norm(x)
        context = h.amax(0, keepdim=True)
        return x + self.c(torch.sigmoid(self.a(h)) * torch.tanh(self.b(h + context)))


class ReturnLabeler(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(5, WIDTH)
        self.units = nn.Sequential(*[GatedUnit(WIDTH) for _ in range(BLOCKS)])
        self.head = nn.Linear(WIDTH, 20)

    def forward(self, points):
        centred = points - points.mean(0, keepdim=True)
        return self.head(self.units(self.inp(centred)))


def scan(n, source):
    return source[:n].clone()


@torch.no_grad()
def main():
    torch.manual_seed(0)
    rng = random.Random(42)
    net = ReturnLabeler().to(DEV).half().eval()
    label = torch.compile(net, dynamic=True)
    source = torch.randn(HIGH, 5, device=DEV, dtype=torch.float16)
    counts = torch.zeros(20, device=DEV)
    t0 = time.time()
    for i in range(SCANS):
        n = rng.randrange(LOW, HIGH)
        scores = label(scan(n, source))[:n]
        counts += scores.softmax(-1).float().sum(0)
        if i % 200 == 0:
            print(f"scan {i} n={n} top={counts.argmax().item()} {time.time() - t0:.1f}s")
    print("share", (counts / counts.sum()).max().item(), f"{time.time() - t0:.1f}s")


if __name__ == "__main__":
    main()
