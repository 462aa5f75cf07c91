"""Seismic event picker: 24 gated blocks over traces, each block compiled on its own to keep compile time down."""
import os
import time
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(8)
dev = "cuda"
T, D, DEPTH, BATCH = 1024, 128, 24, 48


class GatedBlock(nn.Module):
    def __init__(self, idx):
        super().__init__()
        self.register_buffer("idx", torch.tensor(float(idx)))
        self.norm = nn.LayerNorm(D)
        self.mix = nn.Linear(D, 2 * D)
        self.a = nn.Parameter(torch.ones(D) * 0.1)
        self.b = nn.Parameter(torch.zeros(D))

    def forward(self, x):
        h = self.norm(x)
        u, g = self.mix(h).chunk(2, -1)
        h = torch.tanh(u) * torch.sigmoid(g)
        h = F.softplus(h) + torch.sin(self.a * u) * self.b
        h = h - h.mean(1, keepdim=True)
        return x + F.silu(h) * torch.exp(-g.abs()) / (1.0 + 0.1 * self.idx)


class Picker(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(3, D)
        self.blocks = nn.ModuleList(GatedBlock(i) for i in range(DEPTH))
        self.out = nn.Linear(D, 3)

    def forward(self, x):
        x = self.inp(x)
        for b in self.blocks:
            x = b(x)
        return self.out(x)


def traces(n):
    w = torch.randn(n, T, 3, device=dev)
    onset = torch.randint(100, T - 100, (n,), device=dev)
    t = torch.arange(T, device=dev)
    lab = (t[None] >= onset[:, None]).long() + (t[None] >= onset[:, None] + 60).long()
    return w * (1 + lab.unsqueeze(-1)), lab


def main():
    torch.set_float32_matmul_precision("high")
    net = Picker().to(dev)
    for b in net.blocks:
        b.compile()
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    t0 = time.time()
    for it in range(int(os.environ.get("STEPS", "1000"))):
        x, y = traces(BATCH)
        loss = F.cross_entropy(net(x).flatten(0, 1), y.flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if it % 50 == 0:
            print(f"{it} loss {loss.item():.4f} {time.time() - t0:.1f}s", flush=True)


if __name__ == "__main__":
    main()
