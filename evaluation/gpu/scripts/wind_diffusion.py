"""Denoising diffusion of wind profiles (1-D, 8 levels of the atmosphere)."""
import os
import math
import time
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(2)
dev = "cuda"
LEVELS, POINTS, CH, STEPS_T = 8, 512, 96, 500


class Res(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.n1 = nn.GroupNorm(8, ch)
        self.c1 = nn.Conv1d(ch, ch, 3, padding=1)
        self.t = nn.Linear(128, 2 * ch)
        self.n2 = nn.GroupNorm(8, ch)
        self.c2 = nn.Conv1d(ch, ch, 1)
        self.gamma = nn.Parameter(torch.ones(1, ch, 1) * 0.1)

    def forward(self, x, temb):
        scale, shift = self.t(temb).unsqueeze(-1).chunk(2, 1)
        h = self.c1(F.silu(self.n1(x)))
        h = self.n2(h) * (1 + scale) + shift
        h = self.c2(F.mish(h)) * torch.sigmoid(h)
        return x + self.gamma * torch.tanh(h)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv1d(LEVELS, CH, 3, padding=1)
        self.res = nn.ModuleList(Res(CH) for _ in range(6))
        self.head = nn.Conv1d(CH, LEVELS, 1)
        self.tm = nn.Sequential(nn.Linear(64, 128), nn.SiLU(), nn.Linear(128, 128))

    def forward(self, x, t):
        f = torch.exp(torch.arange(32, device=t.device) * (-math.log(1e4) / 32))
        a = t.unsqueeze(1) * f
        temb = self.tm(torch.cat([a.sin(), a.cos()], 1))
        h = self.stem(x)
        for r in self.res:
            h = r(h, temb)
        return self.head(h)


def profiles(n):
    z = torch.linspace(0, 6.28, POINTS, device=dev)
    k = torch.randint(1, 9, (n, LEVELS, 1), device=dev)
    return torch.sin(k * z + torch.rand(n, LEVELS, 1, device=dev) * 6.28) * torch.rand(n, LEVELS, 1, device=dev)


def main():
    torch.set_float32_matmul_precision("high")
    abar = torch.cos(torch.linspace(0, 1.55, STEPS_T, device=dev)) ** 2
    net = Denoiser().to(dev)
    net.compile()
    opt = torch.optim.Adam(net.parameters(), lr=2e-4, fused=True)
    t0 = time.time()
    for it in range(int(os.environ.get("STEPS", "3000"))):
        x = profiles(128)
        t = torch.randint(0, STEPS_T, (128,), device=dev)
        eps = torch.randn_like(x)
        ab = abar[t].view(-1, 1, 1)
        pred = net.forward(ab.sqrt() * x + (1 - ab).sqrt() * eps, t.float())
        loss = F.mse_loss(pred, eps)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if it % 100 == 0:
            print(f"iter {it} loss {loss.item():.4f} {time.time() - t0:.1f}s", flush=True)


if __name__ == "__main__":
    main()
