"""Learns to continue handwriting, and keeps a diary of how every weight is doing."""

import argparse
import collections

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"


class Stroke(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = max(1, width // 64)
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.o = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.u, self.d = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.n1(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.d(F.gelu(self.u(self.n2(x))))


class Writer(nn.Module):
    def __init__(self, width: int, depth: int, length: int, tokens: int = 1024) -> None:
        super().__init__()
        self.tokens, self.order = nn.Embedding(tokens, width), nn.Embedding(length, width)
        self.strokes = nn.ModuleList(Stroke(width) for _ in range(depth))
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, tokens)

    def forward(self, pens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(pens) + self.order.weight[: pens.shape[1]]
        for stroke in self.strokes:
            x = stroke(x)
        return self.out(self.norm(x))


class Diary:
    """The last thousand entries of each weight."""

    def __init__(self) -> None:
        self.pages = collections.defaultdict(lambda: collections.deque(maxlen=1000))

    @torch.no_grad()
    def write(self, model: nn.Module) -> None:
        for name, weight in model.named_parameters():
            size = weight.norm().item()
            slope = weight.grad.norm().item()
            peak = weight.grad.abs().max().item()
            self.pages[name].append((size, slope, peak))

    def loudest(self) -> str:
        return max(self.pages, key=lambda name: self.pages[name][-1][2])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--depth", type=int, default=6)
    args = parser.parse_args()
    torch.manual_seed(8)
    torch.set_float32_matmul_precision("high")
    model = Writer(args.width, args.depth, args.length).to(device)
    writer = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    pens = torch.randint(0, 1024, (32, args.batch, args.length + 1), device=device)
    diary = Diary()
    for step in range(args.steps):
        page = pens[step % len(pens)]
        with torch.autocast(device, torch.bfloat16):
            logits = writer(page[:, :-1])
        loss = F.cross_entropy(logits.float().flatten(0, 1), page[:, 1:].flatten())
        loss.backward()
        if step % 50 == 49:
            diary.write(model)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 500 == 499:
            print(step + 1, loss.item(), diary.loudest())


if __name__ == "__main__":
    main()
