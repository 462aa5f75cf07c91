"""Write melodies token by token with a small decoder and a preallocated cache."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

DEVICE = "cuda"
VOCAB = 512
DIM = 512
HEADS = 8
DEPTH = 10
MAXLEN = 512
VOICES = 4
MELODIES = int(os.environ.get("STEPS", "24"))


class CachedBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1 = nn.RMSNorm(DIM)
        self.n2 = nn.RMSNorm(DIM)
        self.qkv = nn.Linear(DIM, 3 * DIM, bias=False)
        self.o = nn.Linear(DIM, DIM, bias=False)
        self.w1 = nn.Linear(DIM, 2 * DIM, bias=False)
        self.w2 = nn.Linear(2 * DIM, DIM, bias=False)
        shape = (VOICES, HEADS, MAXLEN, DIM // HEADS)
        self.register_buffer("keys", torch.zeros(shape), persistent=False)
        self.register_buffer("values", torch.zeros(shape), persistent=False)

    def forward(self, x, pos, visible):
        q, k, v = (z.view(VOICES, HEADS, 1, -1) for z in self.qkv(self.n1(x)).chunk(3, dim=-1))
        self.keys.index_copy_(2, pos, k)
        self.values.index_copy_(2, pos, v)
        a = F.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=visible)
        x = x + self.o(a.reshape(VOICES, 1, DIM))
        return x + self.w2(F.silu(self.w1(self.n2(x))))


class Composer(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, DIM)
        self.pos = nn.Embedding(MAXLEN, DIM)
        self.blocks = nn.ModuleList(CachedBlock() for _ in range(DEPTH))
        self.norm = nn.RMSNorm(DIM)
        self.register_buffer("slots", torch.arange(MAXLEN), persistent=False)

    def forward(self, token, pos):
        x = self.tok(token) + self.pos(pos)
        visible = (self.slots <= pos).view(1, 1, 1, MAXLEN)
        for b in self.blocks:
            x = b(x, pos, visible)
        logits = self.norm(x) @ self.tok.weight.T
        return logits.argmax(dim=-1)


@torch.no_grad()
def main():
    torch.manual_seed(8)
    model = Composer().to(DEVICE).to(torch.bfloat16).eval()
    step = torch.compile(model, mode="reduce-overhead")
    positions = [torch.tensor([i], device=DEVICE) for i in range(MAXLEN)]
    for m in range(MELODIES):
        token = torch.full((VOICES, 1), m + 1, device=DEVICE)
        score = []
        t0 = time.perf_counter()
        for i in range(MAXLEN):
            torch.compiler.cudagraph_mark_step_begin()
            token = step(token, positions[i]).clone()
            score.append(token)
        notes = torch.cat(score, dim=1).tolist()
        took = time.perf_counter() - t0
        if m % 4 == 3:
            print(f"melody {m}: {len(set(notes[0]))} different notes, {took / MAXLEN * 1e3:.3f} ms per note")


if __name__ == "__main__":
    main()
