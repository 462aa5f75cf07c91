"""Flow-matching transformer for glyph latents. Two strip lengths alternate, the activation scale of
the trunk is watched while training, and a non-finite loss stops the run at once."""
import math
import os
import random
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
BATCH, LENGTHS, DIM, DEPTH = (2, (16, 12), 64, 2) if SMALL else (64, (256, 224), 1024, 4)
HEADS, CHANNELS, CLASSES = DIM // 32 if SMALL else 16, 16, 64
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
history = {"scale": None, "loss": []}


@torch.compiler.disable
def watch(x):
    scale = x.detach()[:, 0].float().abs().mean()
    history["scale"] = scale if history["scale"] is None else torch.lerp(history["scale"], scale, 0.01)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.ModuleList(nn.LayerNorm(DIM, elementwise_affine=False) for _ in range(2))
        self.mod = nn.Linear(DIM, 6 * DIM)
        self.qkv, self.proj = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.mlp = nn.ModuleDict({"up": nn.Linear(DIM, 4 * DIM), "down": nn.Linear(4 * DIM, DIM)})

    def forward(self, x, c):
        parts = [p[:, None] for p in self.mod(F.silu(c)).chunk(6, dim=-1)]
        b, t, d = x.shape
        h = self.norm[0](x) * (1 + parts[0]) + parts[1]
        q, k, v = [z.reshape(b, t, HEADS, d // HEADS).transpose(1, 2) for z in self.qkv(h).split(d, -1)]
        a = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).contiguous().view(b, t, d)
        x = x + parts[2] * self.proj(a)
        h = self.norm[1](x) * (1 + parts[3]) + parts[4]
        return x + parts[5] * self.mlp["down"](F.gelu(self.mlp["up"](h), approximate="tanh"))


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp, self.out = nn.Linear(CHANNELS, DIM), nn.Linear(DIM, CHANNELS)
        self.label = nn.Embedding(CLASSES, DIM)
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.register_buffer("freq", torch.exp(torch.linspace(0, 6, DIM // 2)))

    def forward(self, z, t, y):
        angle = t[:, None] * self.freq
        c = torch.cat([angle.sin(), angle.cos()], -1) + self.label(y)
        x = self.inp(z)
        for i, block in enumerate(self.blocks):
            x = block(x, c)
            if i == DEPTH // 2 - 1:
                watch(x)
        return self.out(x)


def main():
    torch.manual_seed(9)
    random.seed(9)
    flow = Flow().to(device)
    opt = torch.optim.AdamW(flow.parameters(), lr=torch.tensor(1e-4, device=device), fused=True)
    velocity = torch.compile(flow, dynamic=False)
    glyphs = {n: torch.randn(BATCH, n, CHANNELS, device=device) for n in LENGTHS}

    half = STEPS // 2
    for step in range(STEPS):
        if step == half:
            if device.type == "cuda":
                torch.cuda.synchronize()
            t0 = time.perf_counter()
        for group in opt.param_groups:
            group["lr"].fill_(1e-4 * min(1.0, (step + 1) / 50))
        x1 = glyphs[LENGTHS[step % 2]].roll(random.randrange(BATCH), 0)
        x0, y = torch.randn_like(x1), torch.randint(0, CLASSES, (BATCH,), device=device)
        t = torch.rand(BATCH, device=device)
        mix = t[:, None, None]
        with torch.autocast(device.type, dtype=torch.bfloat16):
            v = velocity((1 - mix) * x0 + mix * x1, t, y)
        loss = F.mse_loss(v.float(), x1 - x0)
        loss.backward()
        nn.utils.clip_grad_norm_(flow.parameters(), 1.0)
        opt.step()
        opt.zero_grad()
        history["loss"].append(loss.detach().clone())
    if device.type == "cuda":
        torch.cuda.synchronize()
    t1 = time.perf_counter()
    print(f"loss {torch.stack(history['loss'])[-10:].mean().item():.4f} scale {history['scale'].item():.3f}")
    print(f"step_ms={(t1 - t0) * 1e3 / (STEPS - half):.3f}")


if __name__ == "__main__":
    main()
