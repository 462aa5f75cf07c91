"""Online forecaster for fleet telemetry: every tick one embedding per vehicle channel is pushed
into a per-layer ring and the newest WINDOW entries are attended to."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
FLEET, HEADS, DIM = (2, 2, 16) if SMALL else (16, 16, 64)
RING = 64 if SMALL else 4096
WINDOW = 16 if SMALL else 256
LAYERS = 4
DTYPE = torch.float32 if SMALL else torch.bfloat16


class TickLayer(nn.Module):
    def __init__(self):
        super().__init__()
        width = HEADS * DIM
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x, k_ring, v_ring, slot, recent):
        q, k, v = self.qkv(self.norm(x)).view(FLEET, 3, HEADS, 1, DIM).unbind(1)
        k_ring.index_copy_(2, slot, k)
        v_ring.index_copy_(2, slot, v)
        keys = k_ring.index_select(2, recent)
        values = v_ring.index_select(2, recent)
        att = (q * keys).sum(-1, dtype=torch.float32).mul(DIM ** -0.5).softmax(-1)
        mixed = (att.unsqueeze(-1).to(values.dtype) * values).sum(2).reshape(FLEET, HEADS * DIM)
        x = x + self.out(mixed)
        return x + self.down(F.silu(self.up(x)))


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(TickLayer() for _ in range(LAYERS))
        self.head = nn.Linear(HEADS * DIM, 32)

    def forward(self, x, rings, slot, recent):
        for layer, (k_ring, v_ring) in zip(self.layers, rings):
            x = layer(x, k_ring, v_ring, slot, recent)
        return self.head(x)


def make_rings():
    rings = []
    for _ in range(LAYERS):
        k_ring = torch.zeros(FLEET, HEADS, RING, DIM, device=device, dtype=DTYPE)
        v_ring = torch.zeros(FLEET, HEADS, RING, DIM, device=device, dtype=DTYPE)
        rings.append((k_ring, v_ring))
    return rings


def clock():
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


@torch.no_grad()
def main():
    torch.manual_seed(0)
    model = Forecaster().to(device, DTYPE).eval()
    model = torch.compile(model)
    rings = make_rings()
    ticks = torch.randn(32, FLEET, HEADS * DIM, device=device, dtype=DTYPE)
    back = torch.arange(WINDOW, device=device)
    slot = torch.zeros(1, dtype=torch.long, device=device)
    total = torch.zeros((), device=device)
    start = clock()
    for step in range(STEPS):
        if step == STEPS // 2:
            start = clock()
        recent = (slot - back) % RING
        forecast = model(ticks[step % 32], rings, slot, recent)
        total += forecast.float().square().mean()
        slot = (slot + 1) % RING
    elapsed = clock() - start
    print(f"mean forecast energy {total.item() / STEPS:.4f}")
    print(f"step_ms={elapsed / (STEPS - STEPS // 2) * 1e3:.3f}")


if __name__ == "__main__":
    main()
