"""Small bf16 language model on length-bucketed batches."""
import os
import math
import os
import time
import torch
import torch.nn as nn
import torch.nn.functional as F

DEV = os.environ.get("DEVICE", "cuda")
torch.manual_seed(10)

BIG = DEV == "cuda"
VOCAB, DIM, DEPTH, HEADS = (8192, 512, 4, 8) if BIG else (512, 64, 2, 4)
BUCKETS = (256, 512, 768, 1024) if BIG else (16, 32, 48, 64)
TOKENS = 16384 if BIG else 256
STEPS = 400 if BIG else 24
STEPS = int(os.environ.get("STEPS", STEPS))


def sync():
    if DEV == "cuda":
        torch.cuda.synchronize()


class RMS(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.w = nn.Parameter(torch.ones(d))

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.square().mean(-1, keepdim=True) + 1e-6)
        return (y * self.w).to(x.dtype)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = RMS(DIM), RMS(DIM)
        self.qkv = nn.Linear(DIM, 3 * DIM, bias=False)
        self.o = nn.Linear(DIM, DIM, bias=False)
        self.gate = nn.Linear(DIM, 8 * DIM, bias=False)
        self.down = nn.Linear(4 * DIM, DIM, bias=False)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(a.transpose(1, 2).reshape(b, t, DIM))
        g, u = self.gate(self.n2(x)).chunk(2, -1)
        return x + self.down(F.silu(g) * u)


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, DIM)
        nn.init.normal_(self.emb.weight, std=0.02)
        self.layers = nn.ModuleList(Layer() for _ in range(DEPTH))
        self.norm = RMS(DIM)

    def forward(self, ids):
        x = self.emb(ids[:, :-1])
        for layer in self.layers:
            x = layer(x)
        logits = self.norm(x) @ self.emb.weight.t()
        return F.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten())


def main():
    net = LM().to(DEV)
    opt = torch.optim.AdamW(net.parameters(), lr=3e-4, fused=DEV == "cuda")
    sched = torch.optim.lr_scheduler.LambdaLR(
        opt, lambda k: min(1, (k + 1) / 20) * 0.5 * (1 + math.cos(math.pi * k / STEPS)))
    model = torch.compile(net)
    laps = []
    for k in range(STEPS):
        t = BUCKETS[k % len(BUCKETS)]
        ids = torch.randint(0, VOCAB, (TOKENS // t, t + 1), device=DEV)
        sync()
        t0 = time.perf_counter()
        with torch.autocast(DEV, dtype=torch.bfloat16):
            loss = model(ids)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        sched.step()
        opt.zero_grad()
        sync()
        laps.append(time.perf_counter() - t0)
        if k % 40 == 0:
            print(f"step {k:4d} T={t} loss {loss.item():.3f} grad {norm.item():.3f}")
    laps = sorted(laps[STEPS // 2:])
    print(f"final loss {loss.item():.4f}")
    print(f"median step {laps[len(laps) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
