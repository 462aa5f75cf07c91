"""Train a grain-quality network on spectra; compiled once up front so that no recompile happens mid-run."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

DEVICE = "cuda"
BANDS = 512
BATCH = 2048
EPOCHS = int(os.environ.get("STEPS", "14"))
STEPS_PER_EPOCH = 200


class SpectraBlock(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)
        self.a = nn.Parameter(torch.ones(n))
        self.b = nn.Parameter(torch.zeros(n))
        self.c = nn.Parameter(torch.full((n,), 0.5))

    def forward(self, x):
        y = self.lin(x)
        y = y - y.mean(dim=-1, keepdim=True)
        y = y * torch.rsqrt(y.square().mean(dim=-1, keepdim=True) + 1e-5)
        y = y * self.a + self.b
        y = y + self.c * torch.sin(y).square()
        return x + 0.2 * y * torch.sigmoid(y)


class GrainNet(nn.Module):
    def __init__(self, depth=6):
        super().__init__()
        self.blocks = nn.ModuleList(SpectraBlock(BANDS) for _ in range(depth))
        self.head = nn.Linear(BANDS, 9)

    def forward(self, x):
        x = torch.log1p(x.clamp(min=0.0))
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def warm_up(net):
    probe = torch.rand(1, BANDS, device=DEVICE)
    net(probe).sum().backward()
    net.zero_grad(set_to_none=True)
    torch.compiler.set_stance("eager_on_recompile")


def main():
    torch.manual_seed(5)
    torch.set_float32_matmul_precision("high")
    net = torch.compile(GrainNet().to(DEVICE))
    warm_up(net)
    opt = torch.optim.AdamW(net.parameters(), lr=3e-4, fused=True)
    spectra = torch.rand(40 * BATCH, BANDS, device=DEVICE)
    grades = torch.randint(0, 9, (40 * BATCH,), device=DEVICE)

    for epoch in range(EPOCHS):
        t0 = time.perf_counter()
        running = torch.zeros((), device=DEVICE)
        for s in range(STEPS_PER_EPOCH):
            lo = (s % 40) * BATCH
            loss = F.cross_entropy(net(spectra[lo:lo + BATCH]), grades[lo:lo + BATCH])
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            running += loss.detach()
        mean = running.item() / STEPS_PER_EPOCH
        print(f"epoch {epoch}: loss {mean:.4f}  {(time.perf_counter() - t0) / STEPS_PER_EPOCH * 1e3:.2f} ms/step")


if __name__ == "__main__":
    main()
