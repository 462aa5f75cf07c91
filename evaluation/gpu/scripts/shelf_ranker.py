# Online ranking head: eight shopper sessions per request, wide residual tower.
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

STEPS = int(os.environ.get("STEPS", "8000"))
SESSIONS = 8
WIDTH = 4096
INNER = 11008
DEPTH = 20
SLOTS = 512

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
DTYPE = torch.bfloat16


class PackedLinear(nn.Module):
    def __init__(self, weight, scales):
        super().__init__()
        self.register_buffer("weight", weight)
        self.register_buffer("scales", scales)

    @classmethod
    def pack(cls, w):
        scales = w.abs().amax(dim=1) / 127.0
        q = torch.round(w / scales[:, None]).clamp(-128, 127).to(torch.int8)
        return cls(q, scales.to(DTYPE))

    def forward(self, x):
        return F.linear(x, self.weight.to(x.dtype)) * self.scales


def load_weight(rows, cols, gen):
    # stands in for reading a shard of the checkpoint
    w = torch.randn(rows, cols, device=DEVICE, generator=gen)
    return w * cols ** -0.5


class Block(nn.Module):
    def __init__(self, gen):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(WIDTH, device=DEVICE, dtype=DTYPE))
        self.up = PackedLinear.pack(load_weight(INNER, WIDTH, gen))
        self.down = PackedLinear.pack(load_weight(WIDTH, INNER, gen))

    def forward(self, x):
        h = F.rms_norm(x, (WIDTH,), self.gain)
        return x + self.down(F.gelu(self.up(h), approximate="tanh"))


class Ranker(nn.Module):
    def __init__(self, seed=0):
        super().__init__()
        gen = torch.Generator(device=DEVICE).manual_seed(seed)
        self.blocks = nn.ModuleList(Block(gen) for _ in range(DEPTH))
        self.out = PackedLinear.pack(load_weight(SLOTS, WIDTH, gen))

    def forward(self, sessions):
        for block in self.blocks:
            sessions = block(sessions)
        return self.out(sessions).float()


@torch.no_grad()
def serve():
    ranker = Ranker().to(DEVICE).eval()
    scorer = torch.compile(ranker, fullgraph=True)

    requests = torch.randn(64, SESSIONS, WIDTH, device=DEVICE, dtype=DTYPE)
    shown = torch.zeros(SLOTS, device=DEVICE)

    for i in range(4):
        scorer(requests[i])
    if DEVICE == "cuda":
        torch.cuda.synchronize()

    t0 = time.perf_counter()
    for step in range(STEPS):
        scores = scorer(requests[step % 64])
        best = scores.topk(10, dim=-1).indices
        shown.index_fill_(0, best[0], float(step))
        if step % 2000 == 1999:
            fresh = (shown > step - 2000).float().mean().item()
            print(f"request {step + 1}: {fresh:.1%} of slots shown recently")
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    dt = time.perf_counter() - t0
    print(f"p50-ish latency {dt / STEPS * 1e3:.3f} ms")


if __name__ == "__main__":
    serve()
