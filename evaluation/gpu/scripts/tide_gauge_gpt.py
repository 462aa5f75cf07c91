import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

DEV = torch.device("cuda" if torch.cuda.is_available() else "cpu")
STEPS = int(os.environ.get("STEPS", "300"))
SMALL = os.environ.get("SMALL") == "1"

HOURS = 128 if SMALL else 8192          # about a year of hourly gauge readings
DIM = 64 if SMALL else 1024
HEADS = 4 if SMALL else 16
LAYERS = 2
GAUGES = 2


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1 = nn.RMSNorm(DIM)
        self.qkv = nn.Linear(DIM, 3 * DIM, bias=False)
        self.proj = nn.Linear(DIM, DIM, bias=False)
        self.n2 = nn.RMSNorm(DIM)
        self.up = nn.Linear(DIM, 2 * DIM, bias=False)
        self.down = nn.Linear(2 * DIM, DIM, bias=False)

    def forward(self, x, valid):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, HEADS, DIM // HEADS).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=valid)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, DIM))
        return x + self.down(F.gelu(self.up(self.n2(x)), approximate="tanh"))


class TideModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(4, DIM)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.RMSNorm(DIM)
        self.head = nn.Linear(DIM, 1)

    def forward(self, readings, present):
        t = readings.shape[1]
        past = torch.ones(t, t, dtype=torch.bool, device=readings.device).tril()
        valid = past & present[:, None, None, :]
        x = self.lift(readings)
        for block in self.blocks:
            x = block(x, valid)
        return self.head(self.norm(x))


def year_of_tides(gen):
    t = torch.arange(HOURS, dtype=torch.float32)
    m2 = torch.cos(2 * torch.pi * t / 12.4206 + 6 * torch.rand((), generator=gen))
    s2 = torch.cos(2 * torch.pi * t / 12.0 + 6 * torch.rand((), generator=gen))
    surge = torch.randn(HOURS, generator=gen).cumsum(0) / HOURS ** 0.5
    return torch.stack((m2 + 0.4 * s2 + surge, m2, s2, surge), dim=-1)


def sync():
    if DEV.type == "cuda":
        torch.cuda.synchronize()


def main():
    torch.manual_seed(2)
    gen = torch.Generator().manual_seed(2)
    dtype = torch.bfloat16 if DEV.type == "cuda" else torch.float32
    model = TideModel().to(DEV, dtype).eval()
    forecast = torch.compile(model)
    years = [torch.stack([year_of_tides(gen) for _ in range(GAUGES)]).to(DEV, dtype) for _ in range(4)]
    present = torch.ones(GAUGES, HOURS, dtype=torch.bool, device=DEV)

    drift = torch.zeros((), device=DEV)
    t0 = time.perf_counter()
    with torch.no_grad():
        for step in range(STEPS):
            if step == STEPS // 2:
                sync()
                t0 = time.perf_counter()
            out = forecast(years[step % 4], present)
            drift += out[:, -24:].float().mean()
    sync()
    ms = (time.perf_counter() - t0) * 1e3 / (STEPS - STEPS // 2)
    print(f"mean next-day level {drift.item() / STEPS:.5f}")
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()
