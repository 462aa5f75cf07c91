"""Pre-training of a small decoder on synthetic token streams."""
import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.set_float32_matmul_precision("high")


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.RMSNorm(d), nn.RMSNorm(d)
        self.qkv = nn.Linear(d, 3 * d, bias=False)
        self.proj = nn.Linear(d, d, bias=False)
        self.up = nn.Linear(d, 8 * d // 3 // 64 * 64 * 2, bias=False)
        self.down = nn.Linear(8 * d // 3 // 64 * 64, d, bias=False)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).split(d, dim=-1)
        q, k, v = (z.view(b, t, self.heads, -1).transpose(1, 2) for z in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
        a, g = self.up(self.n2(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(g) * a)


class Decoder(nn.Module):
    def __init__(self, vocab, d, layers, heads, length):
        super().__init__()
        self.tok = nn.Embedding(vocab, d)
        self.pos = nn.Embedding(length, d)
        self.blocks = nn.ModuleList(Block(d, heads) for _ in range(layers))
        self.norm = nn.RMSNorm(d)
        self.head = nn.Linear(d, vocab, bias=False)
        nn.init.normal_(self.tok.weight, std=0.02)

    def forward(self, ids, target):
        t = torch.arange(ids.shape[1], device=ids.device)
        x = self.tok(ids) + self.pos(t)
        for blk in self.blocks:
            x = blk(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1).float(), target.flatten())


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--dim", type=int, default=1024)
    ap.add_argument("--layers", type=int, default=8)
    ap.add_argument("--batch", type=int, default=8)
    ap.add_argument("--length", type=int, default=1024)
    ap.add_argument("--vocab", type=int, default=32768)
    ap.add_argument("--steps", type=int, default=600)
    a = ap.parse_args()

    torch.manual_seed(0)
    model = Decoder(a.vocab, a.dim, a.layers, a.dim // 64, a.length).to(device)
    net = torch.compile(model)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), fused=True)
    corpus = torch.randint(0, a.vocab, (200, a.batch, a.length + 1), device=device)
    corpus[..., 1::2] = (corpus[..., 0:-1:2] * 7 + 13) % a.vocab

    t0 = None
    for step in range(a.steps):
        chunk = corpus[step % len(corpus)]
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = net(chunk[:, :-1], chunk[:, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad(set_to_none=True)
        if step == 9:
            loss.item()
            t0 = time.perf_counter()
        if step % 50 == 49:
            v = loss.item()
            ms = 1e3 * (time.perf_counter() - t0) / (step - 9)
            print(f"step {step + 1}: loss {v:.3f}  {ms:.1f} ms/step  {a.batch * a.length / ms:.0f} tok/ms")


if __name__ == "__main__":
    main()
