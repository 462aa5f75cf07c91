"""Denoiser trained on crops of ever-changing size."""
import os
import os
import random
import time
import torch
import torch.nn as nn

DEV = os.environ.get("DEVICE", "cuda")
torch.manual_seed(8)
random.seed(8)
torch.backends.cudnn.benchmark = False

STEPS = 90
STEPS = int(os.environ.get("STEPS", STEPS))


def sync():
    if DEV == "cuda":
        torch.cuda.synchronize()


class Res(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c1 = nn.Conv2d(c, c, 3, padding=1)
        self.c2 = nn.Conv2d(c, c, 3, padding=1)
        self.g = nn.Parameter(torch.tensor(0.2))

    def forward(self, x):
        return x + self.g * self.c2(nn.functional.silu(self.c1(x)))


class Denoiser(nn.Module):
    def __init__(self, c=32, depth=4):
        super().__init__()
        self.inp = nn.Conv2d(1, c, 5, padding=2)
        self.body = nn.Sequential(*[Res(c) for _ in range(depth)])
        self.out = nn.Conv2d(c, 1, 3, padding=1)

    def forward(self, x):
        return x - self.out(self.body(self.inp(x)))


def crop_batch():
    h, w = random.randint(96, 320), random.randint(96, 320)
    base = torch.randn(4, 1, h // 8 + 1, w // 8 + 1, device=DEV)
    clean = nn.functional.interpolate(base, size=(h, w), mode="bilinear")
    return clean, clean + 0.2 * torch.randn_like(clean)


def main():
    net = Denoiser().to(DEV)
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    model = torch.compile(net, dynamic=True)
    laps = []
    run = 0.0
    for k in range(STEPS):
        clean, noisy = crop_batch()
        sync()
        t0 = time.perf_counter()
        loss = (model(noisy) - clean).square().mean()
        loss.backward()
        opt.step()
        opt.zero_grad()
        sync()
        laps.append(time.perf_counter() - t0)
        run = 0.95 * run + 0.05 * loss.item()
        if k % 20 == 0:
            print(f"step {k:4d} size {tuple(clean.shape[2:])} loss {run:.4f}")
    laps = sorted(laps[STEPS // 2:])
    print(f"smoothed loss {run:.4f}")
    print(f"median step {laps[len(laps) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
