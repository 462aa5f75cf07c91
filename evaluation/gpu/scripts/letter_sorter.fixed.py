"""Scores handwriting strokes left to right with a small causal encoder in bfloat16."""
import os

import torch
from torch import nn
from torch.nn import functional as F

STEPS = int(os.environ.get("STEPS", "12000"))
PAGES, STROKES, HEADS, DIM, DEPTH = 2, 8192, 8, 512, 3
torch.manual_seed(30)


class Stroke(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(DIM)
        self.qkv = nn.Linear(DIM, 3 * DIM, bias=False)
        self.out = nn.Linear(DIM, DIM, bias=False)
        self.gate = nn.Parameter(torch.ones(DIM))

    def forward(self, x, allowed):
        b, n, _ = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, n, 3, HEADS, DIM // HEADS).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        mixed = mixed.transpose(1, 2).reshape(b, n, DIM)
        return x + self.gate * self.out(mixed)


class Sorter(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Stroke() for _ in range(DEPTH))
        self.head = nn.Linear(DIM, 64)
        order = torch.arange(STROKES)
        self.register_buffer("allowed", order[:, None] >= order[None, :])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x, self.allowed)
        return F.gelu(self.head(x)).float().mean(1)


@torch.inference_mode()
def main():
    model = Sorter().to("cuda")
    for p in model.parameters():
        p.data = p.data.bfloat16()
    score = torch.compile(model.eval())
    pages = torch.randn(PAGES, STROKES, DIM, device="cuda", dtype=torch.bfloat16)
    for step in range(STEPS):
        result = score(pages)
        if step % 1000 == 0:
            print("sheet", step, "score", round(result.mean().item(), 5))


main()
