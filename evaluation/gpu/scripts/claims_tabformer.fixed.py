"""Pre-training of a tabular transformer on insurance-claim rows (masked-cell reconstruction)."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
DTYPE = torch.bfloat16 if device.type == "cuda" else torch.float32
PEAK = 989e12

ROWS, COLS, BINS = (4, 16, 16) if SMALL else (64, 48, 64)
WIDTH, HEADS, LAYERS = (64, 4, 2) if SMALL else (256, 8, 4)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate = nn.Linear(WIDTH, 4 * WIDTH, bias=False)
        self.down = nn.Linear(2 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v)
        x = x + self.out(a.transpose(1, 2).reshape(b, t, WIDTH))
        u, g = self.gate(self.n2(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(g) * u)


class TabFormer(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.Embedding(COLS * BINS + 1, WIDTH)
        self.column = nn.Parameter(torch.randn(COLS, WIDTH) * 0.02)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.RMSNorm(WIDTH)
        self.head = nn.Linear(WIDTH, BINS)

    def forward(self, codes, target):
        x = self.cell(codes) + self.column
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x)).float()
        return F.cross_entropy(logits.flatten(0, 1), target.flatten())


def batches(n):
    g = torch.Generator(device=device).manual_seed(11)
    offset = torch.arange(COLS, device=device) * BINS
    out = []
    for _ in range(n):
        target = torch.randint(0, BINS, (ROWS, COLS), device=device, generator=g)
        hide = torch.rand(ROWS, COLS, device=device, generator=g) < 0.3
        out.append((torch.where(hide, COLS * BINS, target + offset), target))
    return out


def sync():
    if device.type == "cuda":
        torch.cuda.synchronize()


def main():
    torch.manual_seed(0)
    model = TabFormer().to(device, DTYPE)
    net = torch.compile(model)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=device.type == "cuda")
    data = batches(8)

    def train_step(i):
        loss = net(*data[i % len(data)])
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        return loss

    meter = FlopCounterMode(display=False)
    half = STEPS // 2
    with meter:
        model(*data[0]).backward()
    opt.zero_grad(set_to_none=True)
    for i in range(STEPS):
        if i == half:
            sync()
            t0 = time.perf_counter()
        loss = train_step(i)
    sync()
    elapsed = (time.perf_counter() - t0) / (STEPS - half)
    flops = meter.get_total_flops()
    print(f"loss {loss.item():.4f}  {flops / 1e9:.1f} GFLOP/step  mfu {flops / elapsed / PEAK:.2%}")
    print(f"step_ms={elapsed * 1e3:.3f}")


if __name__ == "__main__":
    main()
