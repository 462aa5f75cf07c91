"""Nearest-ticket search for a help desk: encodes short tickets with a compact transformer
encoder and keeps a running cosine index of the latest ones."""
import os
import statistics
import time
import zlib

import torch
import torch.nn.functional as F
from torch import nn

VOCAB, WIDTH, HEADS, LENGTH = 4096, 64, 8, 48
WORDS = ("printer vpn mail login screen slow reset password laptop error network disk update "
         "office license phone crash keyboard invoice sync calendar account blocked").split()


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.gain


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = Norm(width), Norm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate = nn.Linear(width, 2 * width, bias=False)
        self.up = nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)

    def forward(self, x, mask):
        b, s, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, s, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        score = q @ k.transpose(-1, -2) / (d // self.heads) ** 0.5
        score = 30.0 * torch.tanh(score / 30.0) + mask
        x = x + self.out((score.softmax(-1) @ v).transpose(1, 2).reshape(b, s, d))
        h = self.n2(x)
        g = self.gate(h)
        return x + self.down(g * torch.sigmoid(1.702 * g) * self.up(h))


class TicketEncoder(nn.Module):
    def __init__(self, depth=3):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, WIDTH)
        self.blocks = nn.ModuleList(Block(WIDTH, HEADS) for _ in range(depth))
        self.norm = Norm(WIDTH)

    def tokenize(self, texts):
        ids = torch.zeros(len(texts), LENGTH, dtype=torch.long)
        for i, text in enumerate(texts):
            words = text.split()[:LENGTH]
            ids[i, :len(words)] = torch.tensor([1 + zlib.crc32(w.encode()) % (VOCAB - 1) for w in words])
        return ids

    def forward(self, ids):
        keep = ids.ne(0)
        mask = torch.where(keep, 0.0, -1e9)[:, None, None, :]
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x, mask)
        x = self.norm(x) * keep.unsqueeze(-1)
        return F.normalize(x.sum(1) / keep.sum(1, keepdim=True), dim=-1)

    @torch.no_grad()
    def encode(self, texts):
        return self(self.tokenize(texts))


def main():
    steps = int(os.environ.get("STEPS", "240"))
    torch.manual_seed(0)
    torch.set_num_threads(1)
    gen = torch.Generator().manual_seed(1)

    model = TicketEncoder().eval()
    model.compile()

    index = F.normalize(torch.randn(512, WIDTH, generator=gen), dim=-1)
    best, times = [], []
    for step in range(steps):
        picks = torch.randint(0, len(WORDS), (16, 40), generator=gen).tolist()
        texts = [" ".join(WORDS[j] for j in row) for row in picks]
        t0 = time.perf_counter()
        vec = model.encode(texts)
        best.append((vec @ index.T).max(dim=1).values.mean().item())
        slot = (step * 16) % 512
        index[slot:slot + 16] = vec
        times.append(time.perf_counter() - t0)

    print(f"mean best match {sum(best[-50:]) / len(best[-50:]):.4f}")
    print(f"index norm {index.norm().item():.3f}, {1e3 * statistics.median(times[steps // 2:]):.3f} ms/step")


if __name__ == "__main__":
    main()
