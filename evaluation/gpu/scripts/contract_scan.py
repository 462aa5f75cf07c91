"""Score clauses in long contracts with head-wise sliding windows."""
import os
import time

import torch
import torch.nn as nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

PAGES = int(os.environ.get("PAGES", "4000"))
BATCH = 2
SEQ = 4096
HEADS = 8
DIM = 512
LAYERS = 2
DEV = "cuda"


class WindowLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(DIM)
        self.qkv = nn.Linear(DIM, 3 * DIM, bias=False)
        self.out = nn.Linear(DIM, DIM, bias=False)

    def forward(self, x, mask):
        b, s, _ = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, s, 3, HEADS, DIM // HEADS).permute(2, 0, 3, 1, 4)
        a = flex_attention(q, k, v, block_mask=mask)
        return x + self.out(a.transpose(1, 2).reshape(b, s, DIM))


class ClauseScorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(5000, DIM)
        self.layers = nn.ModuleList([WindowLayer() for _ in range(LAYERS)])
        self.score = nn.Linear(DIM, 3)

    def forward(self, ids, mask):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x, mask)
        return self.score(x).float()


windows = torch.tensor([64, 64, 128, 128, 256, 256, 512, 512][:HEADS], device=DEV)


def sliding(b, h, q, kv):
    return (q >= kv) & (q - kv < windows[h])


@torch.no_grad()
def main():
    torch.manual_seed(10)
    net = ClauseScorer().to(DEV, torch.bfloat16).eval()
    scorer = torch.compile(net)
    ids = torch.randint(0, 5000, (16, BATCH, SEQ), device=DEV)
    risky = torch.zeros(3, device=DEV)
    t0 = time.time()
    for page in range(PAGES):
        mask = create_block_mask(sliding, BATCH, HEADS, SEQ, SEQ, device=DEV)
        risky += scorer(ids[page % 16], mask).softmax(-1).mean((0, 1))
        if page % 500 == 0:
            print(f"page {page} risk {risky[0].item() / (page + 1):.4f} {time.time() - t0:.1f}s")


if __name__ == "__main__":
    main()
