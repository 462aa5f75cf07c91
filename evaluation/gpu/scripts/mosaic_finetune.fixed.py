"""Fine-tune a token mixer on satellite mosaics, keeping peak memory low."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

STEPS = int(os.environ.get("STEPS", "1000"))
BATCH = 64
PATCHES = 196
DIM = 384
DEPTH = 12
LABELS = 45

device = "cuda" if torch.cuda.is_available() else "cpu"


class MixerBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(DIM)
        self.tok1 = nn.Linear(PATCHES, 256)
        self.tok2 = nn.Linear(256, PATCHES)
        self.norm2 = nn.LayerNorm(DIM)
        self.ch1 = nn.Linear(DIM, 4 * DIM)
        self.ch2 = nn.Linear(4 * DIM, DIM)

    def forward(self, x):
        y = self.norm1(x).transpose(1, 2)
        x = x + self.tok2(F.gelu(self.tok1(y))).transpose(1, 2)
        return x + self.ch2(F.gelu(self.ch1(self.norm2(x))))


class Mosaic(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(16 * 16 * 4, DIM)
        self.blocks = nn.ModuleList(MixerBlock() for _ in range(DEPTH))
        self.norm = nn.LayerNorm(DIM)
        self.head = nn.Linear(DIM, LABELS)

    def forward(self, patches):
        x = self.embed(patches)
        for b in self.blocks:
            x = b(x)
        return self.head(self.norm(x).mean(1))


def attach_optimizer(model, lr=3e-4):
    return torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.02, fused=True)


def main():
    torch.manual_seed(1)
    model = Mosaic().to(device=device, dtype=torch.bfloat16)
    optim = attach_optimizer(model)
    net = torch.compile(model)
    print("tensors:", len(list(model.parameters())))

    data = torch.randn(6, BATCH, PATCHES, 16 * 16 * 4, device=device, dtype=torch.bfloat16)
    target = (torch.rand(6, BATCH, LABELS, device=device) < 0.1).float()

    def one_step(i):
        logits = net(data[i % 6])
        loss = F.binary_cross_entropy_with_logits(logits.float(), target[i % 6])
        loss.backward()
        optim.step()
        optim.zero_grad()
        return loss.detach()

    for i in range(4):
        one_step(i)
    if device == "cuda":
        torch.cuda.synchronize()

    ema = None
    t0 = time.time()
    for step in range(STEPS):
        loss = one_step(step)
        ema = loss if ema is None else torch.lerp(ema, loss, 0.05)
        if step % 200 == 0:
            print(f"{step:5d}  bce {ema.item():.4f}")
    if device == "cuda":
        torch.cuda.synchronize()
        print(f"peak memory {torch.cuda.max_memory_allocated() / 2**30:.2f} GiB")
    print(f"{(time.time() - t0) / STEPS * 1e3:.2f} ms per step")


if __name__ == "__main__":
    main()
