"""Writes recipes, four at a time, a token after the other."""

import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"


class Spoon(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = width // 64
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.o = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, where, allowed, keys, values):
        q, k, v = self.qkv(self.n1(x)).view(len(x), 1, 3, self.heads, 64).permute(2, 0, 3, 1, 4)
        keys.index_copy_(2, where, k)
        values.index_copy_(2, where, v)
        seen = F.scaled_dot_product_attention(q, keys, values, attn_mask=allowed)
        x = x + self.o(seen.reshape(len(x), 1, -1))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class Cook(nn.Module):
    def __init__(self, width: int, depth: int, room: int, vocabulary: int = 2048) -> None:
        super().__init__()
        self.words, self.order = nn.Embedding(vocabulary, width), nn.Embedding(room, width)
        self.spoons = nn.ModuleList(Spoon(width) for _ in range(depth))
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, vocabulary)
        self.room = room

    def forward(self, word, where, memory):
        x = self.words(word)[:, None] + self.order(where)
        allowed = (torch.arange(self.room, device=x.device) <= where)[None, None, None]
        for spoon, (keys, values) in zip(self.spoons, memory):
            x = spoon(x, where, allowed, keys, values)
        return self.out(self.norm(x))[:, 0].float()


class Kitchen:
    def __init__(self, args) -> None:
        self.rng = np.random.default_rng(4)
        self.plates, self.room = args.plates, args.room
        cook = Cook(args.width, args.depth, args.room).to(device, torch.bfloat16).eval()
        self.cook = torch.compile(cook, mode="reduce-overhead")
        shape = (args.plates, args.width // 64, args.room, 64)
        self.memory = [
            (torch.zeros(shape, device=device, dtype=torch.bfloat16), torch.zeros(shape, device=device, dtype=torch.bfloat16))
            for _ in range(args.depth)
        ]
        self.positions = [torch.tensor([at], device=device) for at in range(args.room)]

    def choose(self, logits: torch.Tensor) -> list[int]:
        scores = logits.cpu().numpy().astype(np.float64)
        odds = np.exp(scores - scores.max(1, keepdims=True))
        odds /= odds.sum(1, keepdims=True)
        return [int(self.rng.choice(len(row), p=row)) for row in odds]

    @torch.no_grad()
    def write(self, tokens: int) -> list[list[int]]:
        words, recipe = [1] * self.plates, []
        for at in range(tokens):
            word = torch.tensor(words, device=device)
            logits = self.cook(word, self.positions[at], self.memory)
            words = self.choose(logits)
            recipe.append(words)
        return recipe


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--recipes", type=int, default=30)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--plates", type=int, default=4)
    parser.add_argument("--room", type=int, default=256)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--depth", type=int, default=22)
    args = parser.parse_args()
    torch.manual_seed(4)
    kitchen = Kitchen(args)
    for number in range(args.recipes):
        recipe = kitchen.write(args.tokens)
        print(number, [words[0] for words in recipe[:8]])


if __name__ == "__main__":
    main()
