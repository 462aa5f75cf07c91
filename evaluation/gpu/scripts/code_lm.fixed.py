"""Train a decoder on token streams and keep the weights of the best moment."""
import argparse
import time

import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x, mask):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, d))
        return x + self.down(nn.functional.gelu(self.up(self.n2(x))))


class Decoder(nn.Module):
    def __init__(self, vocab, dim, heads, depth, length):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, dim), nn.Embedding(length, dim)
        self.layers = nn.ModuleList([Layer(dim, heads) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, vocab)
        mask = torch.full((length, length), float("-inf")).triu(1)
        self.register_buffer("mask", mask.bfloat16(), persistent=False)
        self.register_buffer("index", torch.arange(length), persistent=False)

    def forward(self, ids, target):
        x = self.tok(ids) + self.pos(self.index)
        for layer in self.layers:
            x = layer(x, self.mask)
        logits = self.head(self.norm(x)).float()
        return nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())


class Best:
    def __init__(self, every):
        self.every, self.loss, self.weights = every, float("inf"), None
        self.average = None

    def see(self, i, loss, model):
        self.average = loss if self.average is None else 0.98 * self.average + 0.02 * loss
        if i % self.every == 0:
            now = self.average.item()
            if now < self.loss:
                self.loss = now
                self.weights = {k: v.cpu() for k, v in model.state_dict().items()}


def tokens(n, vocab):
    g = torch.Generator().manual_seed(0)
    phrase = torch.randint(0, vocab, (512, 24), generator=g)
    return phrase[torch.randint(0, 512, (n // 24 + 1,), generator=g)].flatten()[:n]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=700)
    ap.add_argument("--length", type=int, default=4096)
    ap.add_argument("--batch", type=int, default=4)
    args = ap.parse_args()
    device = "cuda"

    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    model = Decoder(4096, 512, 8, 6, args.length).to(device, torch.bfloat16)
    loss_fn = torch.compile(model)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    data = tokens(args.batch * (args.length + 1) * 64, 4096).to(device).view(64, args.batch, -1)
    best, began = Best(5), time.perf_counter()
    for i in range(args.steps):
        page = data[i % len(data)]
        loss = loss_fn(page[:, :-1], page[:, 1:])
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        best.see(i, loss.detach(), model)
        if i % 100 == 99:
            print(f"{i + 1} best {best.loss:.4f} {time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
