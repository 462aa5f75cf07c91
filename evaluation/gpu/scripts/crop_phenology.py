import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

DEV = torch.device("cuda" if torch.cuda.is_available() else "cpu")
STEPS = int(os.environ.get("STEPS", "300"))
SMALL = os.environ.get("SMALL") == "1"

PIXELS = 16 if SMALL else 1024
DATES = 16 if SMALL else 64
BANDS, CLASSES = 10, 14
DIM = 32 if SMALL else 256
HEADS, LAYERS = 4, 2 if SMALL else 3


def season_phase(day):
    """Unit phasors of the acquisition dates for each rotary frequency."""
    half = DIM // HEADS // 2
    rate = torch.exp(-torch.arange(half, device=day.device) * (5.0 / half))
    angle = day[:, None] / 365.0 * 6.2831853 * rate[None, :]
    phasor = torch.polar(torch.ones_like(angle), angle)
    phasor = phasor * phasor[:1].conj()
    return phasor.real, phasor.imag


def turn(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1).to(x.dtype)


class SeasonBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.out = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.gate, self.down = nn.Linear(DIM, 4 * DIM), nn.Linear(2 * DIM, DIM)
        self.scale = nn.Parameter(torch.full((DIM,), 0.1))

    def forward(self, x, cos, sin):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, HEADS, DIM // HEADS).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(turn(q, cos, sin), turn(k, cos, sin), v)
        x = x + self.scale * self.out(y.transpose(1, 2).reshape(b, t, DIM))
        u, g = self.gate(self.n2(x)).chunk(2, dim=-1)
        return x + self.scale * self.down(F.silu(g) * torch.tanh(u))


class Phenology(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(BANDS, DIM)
        self.blocks = nn.ModuleList(SeasonBlock() for _ in range(LAYERS))
        self.head = nn.Linear(DIM, CLASSES)

    def forward(self, refl, day):
        cos, sin = season_phase(day)
        x = self.lift(torch.log1p(refl.clamp(min=0)))
        for block in self.blocks:
            x = block(x, cos, sin)
        return self.head(x.amax(dim=1))


def sync():
    if DEV.type == "cuda":
        torch.cuda.synchronize()


def main():
    torch.manual_seed(9)
    torch.set_float32_matmul_precision("high")
    model = Phenology().to(DEV)
    net = torch.compile(model)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=DEV.type == "cuda")
    day = torch.linspace(3, 361, DATES, device=DEV)
    tiles = [torch.rand(PIXELS, DATES, BANDS, device=DEV) for _ in range(6)]
    crops = [torch.randint(0, CLASSES, (PIXELS,), device=DEV) for _ in range(6)]

    history = []
    t0 = time.perf_counter()
    for step in range(STEPS):
        if step == STEPS // 2:
            sync()
            t0 = time.perf_counter()
        refl, label = tiles[step % 6], crops[step % 6]
        with torch.autocast(DEV.type, dtype=torch.bfloat16):
            loss = F.cross_entropy(net(refl, day), label)
        loss.backward()
        opt.step()
        opt.zero_grad()
        history.append(loss.detach())
        if step % 50 == 49:
            print(f"  step {step + 1}: loss {torch.stack(history[-50:]).mean().item():.4f}")
    sync()
    ms = (time.perf_counter() - t0) * 1e3 / (STEPS - STEPS // 2)
    print(f"final loss {history[-1].item():.4f}")
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()
