import os
import time

import torch
import torch.nn as nn

DEV = torch.device("cuda" if torch.cuda.is_available() else "cpu")
STEPS = int(os.environ.get("STEPS", "300"))
SMALL = os.environ.get("SMALL") == "1"

STATIONS = 4 if SMALL else 24       # geophones processed side by side
CHUNK = 64                          # samples per packet
WIDTH = 32 if SMALL else 384
LAYERS = 3 if SMALL else 28


class GatedStage(nn.Module):
    """Minimal gated recurrence, one update per packet."""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inp = nn.Linear(width, 3 * width)
        self.rec = nn.Linear(width, 2 * width, bias=False)
        self.out = nn.Linear(width, width)

    def forward(self, x, h, slow):
        z, r, c = self.inp(self.norm(x)).chunk(3, dim=-1)
        uz, ur = self.rec(h).chunk(2, dim=-1)
        z = torch.sigmoid(z + uz)
        cand = torch.tanh(c + torch.sigmoid(r + ur) * h)
        new = (1 - z) * h + z * cand
        h.copy_(new)
        slow.mul_(0.98).add_(new, alpha=0.02)
        return x + self.out(new - slow)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(CHUNK, WIDTH)
        self.stages = nn.ModuleList(GatedStage(WIDTH) for _ in range(LAYERS))
        self.drop = nn.Linear(WIDTH, CHUNK)

    def forward(self, packet, memory):
        x = self.lift(packet)
        for stage, (h, slow) in zip(self.stages, memory):
            x = stage(x, h, slow)
        return packet - self.drop(x)


def fresh_memory(dtype):
    pairs = []
    for _ in range(LAYERS):
        h = torch.zeros(STATIONS, WIDTH, device=DEV, dtype=dtype)
        slow = torch.zeros(STATIONS, WIDTH, device=DEV, dtype=dtype)
        pairs.append((h, slow))
    return pairs


def sync():
    if DEV.type == "cuda":
        torch.cuda.synchronize()


def main():
    torch.manual_seed(21)
    dtype = torch.bfloat16 if DEV.type == "cuda" else torch.float32
    net = Denoiser().to(DEV, dtype).eval()
    clean = torch.compile(net, mode="reduce-overhead")
    memory = fresh_memory(dtype)
    packets = torch.randn(32, STATIONS, CHUNK, device=DEV, dtype=dtype)

    energy = torch.zeros(STATIONS, device=DEV)
    t0 = time.perf_counter()
    with torch.no_grad():
        for step in range(STEPS):
            if step == STEPS // 2:
                sync()
                t0 = time.perf_counter()
            y = clean(packets[step % 32], memory)
            energy += y.float().square().mean(-1)
    sync()
    ms = (time.perf_counter() - t0) * 1e3 / (STEPS - STEPS // 2)
    print(f"mean residual energy {(energy.mean() / STEPS).item():.5f}")
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()
