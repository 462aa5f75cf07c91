"""Live interpreting: every stream keeps a ring of the last frames that each new frame attends to."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

STEPS = int(os.environ.get("STEPS", "3000"))
WARMUP = 10
STREAMS = 32
RING = int(os.environ.get("RING", "4096"))
LAYERS = 8
WIDTH = 1024
HEADS = 16
HEAD = WIDTH // HEADS
VOCAB = 4096

torch.set_float32_matmul_precision("high")
torch.manual_seed(7)
device = torch.device("cuda")


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x, slot, ring):
        q, k, v = self.qkv(x).view(STREAMS, 1, 3, HEADS, HEAD).permute(2, 0, 3, 1, 4)
        keys, values = ring
        keys, values = keys.index_copy_(2, slot, k), values.index_copy_(2, slot, v)
        y = F.scaled_dot_product_attention(q, keys, values)
        return self.out(y.transpose(1, 2).reshape(STREAMS, 1, WIDTH)), (keys, values)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.norm2 = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, slot, ring):
        y, ring = self.attention(self.norm1(x), slot, ring)
        x = x + y
        return x + self.down(F.gelu(self.up(self.norm2(x)))), ring


class Interpreter(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.words = nn.Linear(WIDTH, VOCAB)

    def forward(self, frame, slot, rings):
        x, updated = frame, []
        for layer, ring in zip(self.layers, rings):
            x, ring = layer(x, slot, ring)
            updated.append(ring)
        return self.words(self.norm(x)).argmax(-1), updated


def warm_ring():
    shape = (STREAMS, HEADS, RING, HEAD)
    return tuple(torch.randn(shape, device=device, dtype=torch.bfloat16) for _ in range(2))


model = Interpreter().to(device, torch.bfloat16).eval()
advance = torch.compile(model)
rings = [warm_ring() for _ in range(LAYERS)]
frames = [torch.randn(STREAMS, 1, WIDTH, device=device, dtype=torch.bfloat16) for _ in range(16)]
slots = [torch.tensor([i], device=device) for i in range(RING)]

with torch.no_grad():
    for i in range(WARMUP):
        words, rings = advance(frames[i % len(frames)], slots[i % RING], rings)

    start = STEPS // 2
    for step in range(STEPS):
        if step == start:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        words, rings = advance(frames[step % len(frames)], slots[(WARMUP + step) % RING], rings)
        if step % 500 == 0:
            print(f"step {step:5d}  first words {words[:4, 0].tolist()}")

torch.cuda.synchronize()
elapsed = time.perf_counter() - t0
print(f"ms per step: {1e3 * elapsed / (STEPS - start):.3f}")
