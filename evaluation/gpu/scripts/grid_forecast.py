"""Trains a transformer on hourly substation load; reports achieved TFLOP/s next to the loss."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
BATCH, HOURS, FEATS = (2, 24, 12) if SMALL else (32, 168, 12)
WIDTH, HEADS, DEPTH = (32, 2, 2) if SMALL else (256, 4, 4)
torch.set_float32_matmul_precision("high")


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH)
        self.gate, self.up = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(WIDTH, 2 * WIDTH)
        self.down = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, WIDTH))
        h = self.n2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class LoadModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(FEATS, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(DEPTH))
        self.head = nn.Linear(WIDTH, 3)

    def forward(self, x):
        h = self.embed(x)
        for layer in self.layers:
            h = layer(h)
        return self.head(h)


QUANTILES = torch.tensor([0.1, 0.5, 0.9]).to(device)


def quantile_loss(pred, target):
    err = target[..., None] - pred
    q = QUANTILES
    return torch.maximum(q * err, (q - 1) * err).mean()


def clock():
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def main():
    torch.manual_seed(0)
    net = LoadModel().to(device)
    model = torch.compile(net)
    opt = torch.optim.AdamW(net.parameters(), lr=3e-4, fused=True)
    x = torch.randn(16, BATCH, HOURS, FEATS, device=device)
    y = x[..., :4].sum(-1).cumsum(2) * 0.1
    flops = 0
    seen = torch.zeros((), device=device)
    start = clock()
    for step in range(STEPS):
        if step == STEPS // 2:
            start, flops = clock(), 0
        i = step % 16
        with FlopCounterMode(display=False) as counter:
            loss = quantile_loss(model(x[i]), y[i])
            loss.backward()
        flops += counter.get_total_flops()
        opt.step()
        opt.zero_grad(set_to_none=True)
        seen += loss.detach()
    elapsed = clock() - start
    print(f"mean loss {seen.item() / STEPS:.4f}  {flops / elapsed / 1e12:.2f} TFLOP/s")
    print(f"step_ms={elapsed / (STEPS - STEPS // 2) * 1e3:.3f}")


if __name__ == "__main__":
    main()
