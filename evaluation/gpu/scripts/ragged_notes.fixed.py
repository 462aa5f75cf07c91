"""Score free-text maintenance notes, one note per request, with a small encoder."""
import os
import random
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

DEVICE = "cuda"
VOCAB = 6000
DIM = 256
HEADS = 4
DEPTH = 6
REQUESTS = int(os.environ.get("STEPS", "1400"))


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.n1 = nn.LayerNorm(dim)
        self.n2 = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.up = nn.Linear(dim, 4 * dim)
        self.down = nn.Linear(4 * dim, dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class NoteScorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, DIM)
        self.layers = nn.ModuleList(Layer(DIM, HEADS) for _ in range(DEPTH))
        self.norm = nn.LayerNorm(DIM)
        self.head = nn.Linear(DIM, 5)

    def forward(self, tokens):
        x = self.emb(tokens)
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x).mean(dim=1)
        return self.head(x).softmax(dim=-1)


def make_requests(n, seed):
    rng = random.Random(seed)
    lengths = [rng.randint(40, 1800) for _ in range(n)]
    g = torch.Generator().manual_seed(seed)
    return [torch.randint(0, VOCAB, (1, n_tok), generator=g).to(DEVICE) for n_tok in lengths]


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    scorer = NoteScorer().to(DEVICE).eval()
    fast = torch.compile(scorer, dynamic=True)
    requests = make_requests(REQUESTS, 3)

    severity = torch.zeros(5, device=DEVICE)
    start = time.perf_counter()
    with torch.no_grad():
        for i, tokens in enumerate(requests):
            probs = fast(tokens)
            severity += probs[0]
            if (i + 1) % 200 == 0:
                top = int(severity.argmax())
                dt = (time.perf_counter() - start) / 200
                print(f"{i + 1:5d} notes, most common class {top}, {dt * 1e3:.2f} ms per note")
                start = time.perf_counter()
    print("class mass", [round(v, 1) for v in severity.tolist()])


if __name__ == "__main__":
    main()
