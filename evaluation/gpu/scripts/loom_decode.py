"""Weave patterns thread by thread: a small causal model with a key/value store kept in buffers."""
import os

import torch
from torch import nn
import torch.nn.functional as F

DEVICE = torch.device("cuda")
STEPS = int(os.environ.get("STEPS", "12000"))
LOOMS, LENGTH, COLOURS, DIM, HEADS, DEPTH = 16, 512, 96, 512, 8, 12


class Heddle(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.out = nn.Linear(DIM, DIM)
        self.up, self.down = nn.Linear(DIM, 4 * DIM), nn.Linear(4 * DIM, DIM)
        shape = (LOOMS, HEADS, LENGTH, DIM // HEADS)
        self.register_buffer("keys", torch.zeros(shape), persistent=False)
        self.register_buffer("values", torch.zeros(shape), persistent=False)

    def forward(self, x, at, seen):
        q, k, v = self.qkv(self.n1(x)).view(LOOMS, 1, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        self.keys.index_copy_(2, at, k)
        self.values.index_copy_(2, at, v)
        y = F.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=seen)
        x = x + self.out(y.transpose(1, 2).reshape(LOOMS, 1, DIM))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class Loom(nn.Module):
    def __init__(self):
        super().__init__()
        self.colour = nn.Embedding(COLOURS, DIM)
        self.place = nn.Embedding(LENGTH, DIM)
        self.heddles = nn.ModuleList(Heddle() for _ in range(DEPTH))
        self.head = nn.Linear(DIM, COLOURS)

    def forward(self, thread, at):
        x = self.colour(thread) + self.place(at)
        seen = (torch.arange(LENGTH, device=at.device) <= at).view(1, 1, 1, LENGTH)
        for heddle in self.heddles:
            x = heddle(x, at, seen)
        return self.head(x)


@torch.no_grad()
def main():
    torch.manual_seed(64)
    loom = Loom().to(DEVICE, torch.bfloat16).eval()
    weave = torch.compile(loom, mode="reduce-overhead")
    pattern = torch.randint(COLOURS, (LENGTH + 1, LOOMS, 1), device=DEVICE)
    at = torch.zeros(1, dtype=torch.long, device=DEVICE)
    strain = torch.zeros((), device=DEVICE)
    for step in range(STEPS):
        torch.compiler.cudagraph_mark_step_begin()
        logits = weave(pattern[step % LENGTH], at)
        wanted = pattern[step % LENGTH + 1]
        strain = 0.99 * strain + 0.01 * F.cross_entropy(logits[:, -1].float(), wanted[:, 0])
        at.add_(1)
        if (step + 1) % LENGTH == 0:
            at.zero_()
        if step % 500 == 499:
            print(f"thread {step + 1} strain {strain.item():.4f}")
    print("last logits", round(logits.float().std().item(), 4))


main()
