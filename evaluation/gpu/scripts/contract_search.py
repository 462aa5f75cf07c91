"""Embeds the clauses of contracts for a search index; each batch is as long as its longest clause."""

import argparse
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"


class Reader(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = width // 64
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.back = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.think, self.say = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.first(x)).chunk(3, dim=-1)
        q, k, v = (part.unflatten(-1, (self.heads, 64)).transpose(1, 2) for part in (q, k, v))
        x = x + self.back(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.say(F.gelu(self.think(self.second(x))))


class ClauseEncoder(nn.Module):
    def __init__(self, width: int, depth: int, vocabulary: int = 16000, longest: int = 768) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.places = nn.Parameter(0.02 * torch.randn(longest, width))
        self.readers = nn.ModuleList(Reader(width) for _ in range(depth))
        self.norm = nn.LayerNorm(width)

    def forward(self, clause: torch.Tensor) -> torch.Tensor:
        x = self.words(clause) + self.places[: clause.shape[1]]
        for reader in self.readers:
            x = reader(x)
        return F.normalize(self.norm(x).mean(1), dim=-1)


class Index:
    def __init__(self, width: int, rows: int) -> None:
        self.rows = torch.zeros(rows, width, device=device, dtype=torch.bfloat16)
        self.at = 0

    def add(self, vectors: torch.Tensor) -> None:
        self.rows[self.at : self.at + len(vectors)] = vectors
        self.at = (self.at + len(vectors)) % (len(self.rows) - len(vectors))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=3000)
    parser.add_argument("--clauses", type=int, default=24)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--depth", type=int, default=6)
    args = parser.parse_args()
    torch.manual_seed(3)
    pick = random.Random(3)
    encoder = ClauseEncoder(args.width, args.depth).to(device, torch.bfloat16).eval()
    encode = torch.compile(encoder, mode="reduce-overhead", dynamic=True)
    index = Index(args.width, 50_000)
    pages = torch.randint(0, 16000, (64, args.clauses, 768), device=device)
    with torch.no_grad():
        for number in range(args.batches):
            longest = pick.randint(64, 704)
            clauses = pages[number % len(pages), :, :longest].contiguous()
            index.add(encode(clauses))
    print("indexed", args.batches * args.clauses, index.rows[0, :3].tolist())


if __name__ == "__main__":
    main()
