"""Embeds short clips from a reef monitoring camera and scores fish activity per clip."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

STEPS = int(os.environ.get("STEPS", "3000"))
WARMUP = 10
CLIPS = 12            # clips in a batch
TOKENS = 256          # patches in a clip (16 x 16)
WIDTH = 768
HEADS = 12
CHANNELS, FRAMES, PATCH = 3, 2, 14

torch.set_float32_matmul_precision("high")
torch.manual_seed(0)
device = torch.device("cuda")


class PatchEmbed(nn.Module):
    def __init__(self):
        super().__init__()
        size = (FRAMES, PATCH, PATCH)
        self.proj = nn.Conv3d(CHANNELS, WIDTH, kernel_size=size, stride=size, bias=False)

    def forward(self, pixels):
        pixels = pixels.view(-1, CHANNELS, FRAMES, PATCH, PATCH)
        return F.linear(pixels.flatten(1), self.proj.weight.flatten(1))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v)
        x = x + self.out(a.transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class ClipScorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = PatchEmbed()
        self.position = nn.Parameter(0.02 * torch.randn(TOKENS, WIDTH))
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, 8)

    def forward(self, pixels):
        x = self.embed(pixels).view(-1, TOKENS, WIDTH) + self.position
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(1)).softmax(-1)


model = ClipScorer().to(device, torch.bfloat16).eval()
score = torch.compile(model)

# The camera software hands over the clips already cut into patches, one patch a row.
stream = [torch.randn(CLIPS * TOKENS, CHANNELS * FRAMES * PATCH * PATCH,
                      device=device, dtype=torch.bfloat16) for _ in range(8)]

with torch.no_grad():
    for i in range(WARMUP):
        score(stream[i % len(stream)])

    activity = torch.zeros(8, device=device)
    start = STEPS // 2
    for step in range(STEPS):
        if step == start:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        p = score(stream[step % len(stream)])
        activity.lerp_(p.float().mean(0), 0.01)
        if step % 500 == 0:
            print(f"step {step:5d}  most active class {activity.argmax().item()}")

torch.cuda.synchronize()
elapsed = time.perf_counter() - t0
print(f"ms per step: {1e3 * elapsed / (STEPS - start):.3f}")
