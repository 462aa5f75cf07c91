"""Scores transcript sentences one batch at a time, each cut to its longest sentence."""
import argparse
import random

import torch
from torch import nn

DEVICE = "cuda"


class Scorer(nn.Module):
    def __init__(self, words=8000, width=192, depth=4):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        layer = lambda: nn.ModuleDict({"norm": nn.LayerNorm(width), "mix": nn.Linear(width, width), "gate": nn.Linear(width, width)})
        self.layers = nn.ModuleList(layer() for _ in range(depth))
        self.out = nn.Linear(width, 1)

    def forward(self, tokens):
        h = self.embed(tokens)
        for part in self.layers:
            u = part["norm"](h)
            summary = torch.cumsum(u, dim=1)
            h = h + torch.sigmoid(part["gate"](u)) * torch.tanh(part["mix"](summary))
        return self.out(h.amax(1)).squeeze(-1)


def batches(seed, size):
    rng = random.Random(seed)
    g = torch.Generator(device=DEVICE).manual_seed(seed)
    while True:
        longest = rng.randint(20, 400)
        yield torch.randint(0, 8000, (size, longest), device=DEVICE, generator=g)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=3000)
    args = ap.parse_args()
    torch.manual_seed(8)
    torch.set_float32_matmul_precision("high")
    score = torch.compile(Scorer().to(DEVICE).eval(), mode="reduce-overhead")
    source = batches(seed=8, size=8)
    running = torch.zeros((), device=DEVICE)
    with torch.no_grad():
        for step in range(args.steps):
            tokens = next(source)
            running = 0.99 * running + 0.01 * score(tokens).mean()
            if step % 500 == 0:
                print(f"batch {step:5d} length {tokens.shape[1]:3d} score {running.item():.5f}")


if __name__ == "__main__":
    main()
