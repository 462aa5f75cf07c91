"""Streaming transducer with an ever-growing attention memory."""
import os
import os
import time
import torch
import torch.nn as nn
import torch.nn.functional as F

DEV = os.environ.get("DEVICE", "cuda")
torch.manual_seed(12)

DEPTH, DIM, HEADS, B = 6, 128, 4, 8
FRAMES = 320
FRAMES = int(os.environ.get("FRAMES", FRAMES))


def sync():
    if DEV == "cuda":
        torch.cuda.synchronize()


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(DIM)
        self.q = nn.Linear(DIM, DIM)
        self.o = nn.Linear(DIM, DIM)
        self.ff = nn.Sequential(nn.Linear(DIM, 2 * DIM), nn.GELU(), nn.Linear(2 * DIM, DIM))

    def forward(self, x, mem, valid):
        q = self.q(self.norm(x)).view(B, 1, HEADS, -1).transpose(1, 2)
        kv = mem.view(B, -1, HEADS, DIM // HEADS).transpose(1, 2)
        s = (q @ kv.transpose(-1, -2)) * (DIM // HEADS) ** -0.5
        s = s.masked_fill(~valid, -1e9)
        a = s.softmax(-1) @ kv
        x = x + self.o(a.transpose(1, 2).reshape(B, 1, DIM))
        return x + self.ff(x)


class Transducer(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.ModuleList(Cell() for _ in range(DEPTH))

    def forward(self, x, mem, valid):
        for cell in self.cells:
            x = cell(x, mem, valid)
        return torch.tanh(x)


def main():
    net = Transducer().to(DEV).eval()
    step = torch.compile(net, mode="reduce-overhead")
    mem = torch.randn(B, 4, DIM, device=DEV)
    laps = []
    with torch.no_grad():
        for k in range(FRAMES):
            x = torch.randn(B, 1, DIM, device=DEV)
            sync()
            t0 = time.perf_counter()
            valid = torch.ones(mem.shape[1], dtype=torch.bool, device=DEV)
            draft = step(x, mem, valid).clone()
            y = step(draft, mem, valid).clone()
            mem = torch.cat([mem, y], dim=1)
            sync()
            laps.append(time.perf_counter() - t0)
            if k % 50 == 0:
                print(f"frame {k:4d} memory {mem.shape[1]} |y| {y.abs().mean().item():.4f}")
    laps = sorted(laps[FRAMES // 2:])
    print(f"memory norm {mem.norm().item():.4f}")
    print(f"median frame {laps[len(laps) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
