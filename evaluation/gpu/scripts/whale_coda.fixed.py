"""Re-ranking of sperm-whale coda candidates.

Clips proposed by a click detector are scored by a stack of wide dense layers.  The
checkpoint stores the weights as int8 with one scale per output row, which keeps the
download to the buoy small.
"""
import os
import time

import torch
from torch import nn
import torch.nn.functional as F

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
WIDTH = 256 if SMALL else 8192
LAYERS = 2 if SMALL else 6
CLIPS = 24
CODAS = 24


class RowScaledDense(nn.Module):
    """Dense layer restored from the int8 checkpoint."""

    def __init__(self, n_in, n_out, gen, device):
        super().__init__()
        q = torch.randint(-127, 128, (n_out, n_in), dtype=torch.int8, generator=gen, device=device)
        scale = torch.full((n_out,), 1.0 / (73.0 * n_in ** 0.5), device=device)
        scale = scale.to(torch.bfloat16)
        self.register_buffer("w", q.to(torch.bfloat16) * scale[:, None])

    def forward(self, x):
        return F.linear(x, self.w)


class CodaRanker(nn.Module):
    def __init__(self, gen, device):
        super().__init__()
        self.layers = nn.ModuleList(
            RowScaledDense(WIDTH, WIDTH, gen, device) for _ in range(LAYERS))
        self.out = RowScaledDense(WIDTH, CODAS, gen, device)

    def forward(self, clip):
        x = clip
        for layer in self.layers:
            h = F.rms_norm(x, (WIDTH,))
            x = x + F.gelu(layer(h), approximate="tanh")
        return self.out(F.rms_norm(x, (WIDTH,))).float()


def clock():
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


@torch.no_grad()
def main():
    torch.manual_seed(2)
    gen = torch.Generator(device=DEVICE).manual_seed(2)
    ranker = CodaRanker(gen, DEVICE).eval()
    ranker = torch.compile(ranker)
    clips = [torch.randn(CLIPS, WIDTH, device=DEVICE, dtype=torch.bfloat16) for _ in range(6)]
    votes = torch.zeros(CODAS, device=DEVICE)
    half = STEPS // 2
    t0 = clock()
    for step in range(STEPS):
        if step == half:
            t0 = clock()
        scores = ranker(clips[step % len(clips)])
        votes += torch.softmax(scores, dim=1).sum(0)
    ms = (clock() - t0) * 1e3 / (STEPS - half)
    votes /= votes.sum()
    print("top coda", int(votes.argmax()), "share", round(votes.max().item(), 5))
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()
