"""Reading tablet lines: a wide mixer network turns sixteen sign embeddings of one line into
transliteration scores. Runs over a museum catalogue, line after line, in mixed precision."""
import os
import time

import torch
from torch import nn

dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
STEPS = int(os.environ.get("STEPS", "300"))
SMALL = os.environ.get("SMALL") == "1"

WIDTH = 64 if SMALL else 2048
DEPTH = 2 if SMALL else 12
SIGNS = 907
LINE = 16


class LineMixer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.shift = nn.Parameter(torch.zeros(LINE, 1))

    def forward(self, h):
        z = self.norm(h + torch.sigmoid(self.shift) * torch.roll(h, 1, dims=0))
        return h + self.down(nn.functional.gelu(self.up(z)))


class Reader(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.sign = nn.Embedding(SIGNS, width)
        self.place = nn.Parameter(torch.randn(LINE, width) * 0.02)
        self.body = nn.ModuleList([LineMixer(width) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)
        self.reading = nn.Linear(width, SIGNS)

    def forward(self, signs):
        h = self.sign(signs) + self.place
        for block in self.body:
            h = block(h)
        return self.reading(self.norm(h)).float().log_softmax(dim=-1)


def build():
    torch.manual_seed(8)
    with torch.device(dev):
        model = Reader(WIDTH, DEPTH)
    return model.eval().to(torch.bfloat16)


def catalogue(n):
    g = torch.Generator().manual_seed(21)
    lines = torch.randint(0, SIGNS, (n, LINE), generator=g)
    return lines.to(dev)


def main():
    model = build()
    reader = torch.compile(model)
    lines = catalogue(256)
    certainty = torch.zeros(LINE, device=dev)

    half, t0 = STEPS // 2, None
    with torch.no_grad(), torch.autocast(dev.type, dtype=torch.bfloat16):
        for k in range(STEPS):
            if k == half:
                if dev.type == "cuda":
                    torch.cuda.synchronize()
                t0 = time.perf_counter()
            logp = reader(lines[k % lines.shape[0]])
            certainty += logp.amax(dim=-1)
    if dev.type == "cuda":
        torch.cuda.synchronize()
    ms = (time.perf_counter() - t0) * 1e3 / (STEPS - half)
    print(f"certainty {certainty.mean().item() / STEPS:.4f}")
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()
