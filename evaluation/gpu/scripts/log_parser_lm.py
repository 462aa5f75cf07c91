"""Pretrain a compact causal transformer on machine logs (synthetic tokens)."""
import os
import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

STEPS = int(os.environ.get("STEPS", "900"))
BATCH = 16
CONTEXT = 1024
VOCAB = 8192
DIM = 1024
HEADS = 16
LAYERS = 8

device = "cuda" if torch.cuda.is_available() else "cpu"


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(DIM, 3 * DIM, bias=False)
        self.proj = nn.Linear(DIM, DIM, bias=False)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, HEADS, DIM // HEADS).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(b, t, DIM))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1 = nn.RMSNorm(DIM)
        self.attn = Attention()
        self.n2 = nn.RMSNorm(DIM)
        self.up = nn.Linear(DIM, 4 * DIM, bias=False)
        self.down = nn.Linear(4 * DIM, DIM, bias=False)

    def forward(self, x):
        x = x + self.attn(self.n1(x))
        return x + self.down(F.gelu(self.up(self.n2(x)), approximate="tanh"))


class LogLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, DIM)
        self.pos = nn.Parameter(torch.zeros(CONTEXT, DIM))
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.RMSNorm(DIM)
        self.head = nn.Linear(DIM, VOCAB, bias=False)

    def forward(self, ids, target):
        x = self.tok(ids) + self.pos
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1).float(), target.flatten())


def schedule(step):
    warm = min(1.0, (step + 1) / 50)
    return warm * 0.5 * (1 + math.cos(math.pi * step / (STEPS + 10)))


def main():
    torch.manual_seed(0)
    model = LogLM().to(device=device, dtype=torch.bfloat16)
    opt = torch.optim.AdamW(model.parameters(), lr=4e-4, weight_decay=0.1, fused=True)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, schedule)
    loss_fn = torch.compile(model)

    def train_step():
        ids = torch.randint(0, VOCAB, (BATCH, CONTEXT + 1), device=device)
        loss = loss_fn(ids[:, :-1].contiguous(), ids[:, 1:].contiguous())
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        sched.step()
        return loss.detach()

    for _ in range(4):
        train_step()
    if device == "cuda":
        torch.cuda.synchronize()

    t0 = time.time()
    for step in range(STEPS):
        loss = train_step()
        if step % 50 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}  lr {sched.get_last_lr()[0]:.2e}")
    if device == "cuda":
        torch.cuda.synchronize()
    span = time.time() - t0
    print(f"{BATCH * CONTEXT * STEPS / span:.0f} tokens/s")


if __name__ == "__main__":
    main()
