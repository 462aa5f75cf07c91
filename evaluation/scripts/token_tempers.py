"""Answers chats: each request brings its own temperature, its own top-k and its own penalty for repeats."""
import argparse
import random
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class Wish:
    temperature: float
    top_k: int
    penalty: float


class Cell(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.into = nn.Linear(width, 2 * width)
        self.decay = nn.Parameter(torch.linspace(-1, 3, width))

    def forward(self, x, state):
        gate, value = self.into(F.rms_norm(x, x.shape[-1:])).chunk(2, -1)
        keep = torch.sigmoid(self.decay)
        state = keep * state + (1 - keep) * torch.tanh(value)
        return x + state * F.silu(gate), state


class Chatter(nn.Module):
    def __init__(self, words=6000, width=96, depth=3):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.cells = nn.ModuleList(Cell(width) for _ in range(depth))
        self.head = nn.Linear(width, words)

    def forward(self, last, states, seen, noise, temperature, top_k, penalty):
        x, kept = self.words(last), []
        for cell, state in zip(self.cells, states):
            x, state = cell(x, state)
            kept.append(state)
        logits = self.head(x)
        logits = logits - penalty * torch.log1p(seen)
        floor = logits.topk(top_k, -1).values[:, -1:]
        logits = torch.where(logits < floor, -1e4, logits / temperature)
        chosen = (logits - torch.log(-torch.log(noise))).argmax(-1)
        seen = 0.98 * seen + F.one_hot(chosen, seen.shape[-1])
        return chosen, kept, seen


class Desk:
    def __init__(self, model, chats):
        self.model = torch.compile(model.eval(), fullgraph=True)
        self.chats, self.width, self.vocabulary = chats, model.words.embedding_dim, model.words.num_embeddings
        self.depth = len(model.cells)
        self.noise = torch.rand(16, chats, self.vocabulary).clamp(1e-6, 1 - 1e-6)

    @torch.inference_mode()
    def answer(self, wish, length):
        last = torch.zeros(self.chats, dtype=torch.long)
        states = [torch.zeros(self.chats, self.width) for _ in range(self.depth)]
        seen = torch.zeros(self.chats, self.vocabulary)
        words = []
        for place in range(length):
            last, states, seen = self.model(
                last, states, seen, self.noise[place % 16], wish.temperature, wish.top_k, wish.penalty)
            words.append(last)
        return torch.stack(words, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=800)
    parser.add_argument("--chats", type=int, default=16)
    args = parser.parse_args()
    torch.manual_seed(0)
    dice = random.Random(3)
    desk = Desk(Chatter(), args.chats)
    lengths = 0
    for number in range(args.requests):
        wish = Wish(dice.uniform(0.5, 1.3), dice.randint(5, 60), dice.uniform(0.1, 0.8))
        lengths += desk.answer(wish, 16).numel()
    print(lengths, "words")


if __name__ == "__main__":
    main()
