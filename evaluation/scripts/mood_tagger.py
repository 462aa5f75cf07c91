"""Tag short messages with mood scores; messages are bucketed by length first."""
import argparse
import collections
import time

import torch
from torch import nn

BUCKETS = (16, 32, 64)


class Pooler(nn.Module):
    def __init__(self, vocab, width):
        super().__init__()
        self.embed = nn.Embedding(vocab, width, padding_idx=0)
        self.gate = nn.Linear(width, 2 * width)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 6)

    def forward(self, ids):
        keep = (ids > 0).unsqueeze(-1)
        h = self.embed(ids)
        a, b = self.gate(self.norm(h)).chunk(2, -1)
        h = h + torch.sigmoid(a) * nn.functional.gelu(b) - 0.1 * torch.tanh(a * b)
        h = torch.where(keep, h, 0.0)
        return torch.sigmoid(self.head(h.sum(1) / keep.sum(1).clamp_min(1)))


def messages(n, vocab, seed):
    g = torch.Generator().manual_seed(seed)
    length = torch.randint(4, BUCKETS[-1] + 1, (n,), generator=g).tolist()
    return [torch.randint(1, vocab, (k,), generator=g) for k in length]


def shelves(texts, batch):
    """Full batches per bucket, padded to the bucket's own length."""
    waiting, ready = collections.defaultdict(list), []
    for t in texts:
        b = next(x for x in BUCKETS if len(t) <= x)
        waiting[b].append(t)
        if len(waiting[b]) == batch:
            page = torch.zeros(batch, b, dtype=torch.long)
            for row, text in enumerate(waiting.pop(b)):
                page[row, : len(text)] = text
            ready.append(page)
    return ready


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=10000)
    ap.add_argument("--batch", type=int, default=64)
    args = ap.parse_args()

    torch.manual_seed(0)
    model = Pooler(5000, 64).eval()
    tag = torch.compile(model)
    pages = shelves(messages(6000, 5000, 1), args.batch)
    counts = torch.zeros(6)
    began = time.perf_counter()
    with torch.inference_mode():
        for i in range(args.steps):
            counts += tag(pages[i % len(pages)]).mean(0)
    spent = time.perf_counter() - began
    print(f"{args.steps / spent:.1f} pages/s", [round(c, 3) for c in (counts / args.steps).tolist()])


if __name__ == "__main__":
    main()
