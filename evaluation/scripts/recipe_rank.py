"""Learns to rank recipes; every epoch starts from a clean slate of caches."""
import argparse
import gc
import random

import torch
from torch import nn


class Ranker(nn.Module):
    def __init__(self, foods=500, width=48):
        super().__init__()
        self.taste = nn.Embedding(foods, width)
        self.mix = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, 1))

    def forward(self, ingredients):
        bowl = self.taste(ingredients)
        bowl = bowl * torch.sigmoid(bowl.mean(1, keepdim=True))
        return self.mix(bowl.sum(1)).squeeze(-1)


def free_memory():
    """Called between epochs so that a long run does not grow."""
    gc.collect()
    torch._dynamo.reset()


class Trainer:
    def __init__(self, batches_per_epoch):
        self.model = Ranker()
        self.optimiser = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.rank = torch.compile(self.model)
        self.batches_per_epoch = batches_per_epoch
        self.rng = random.Random(17)
        self.liking = torch.randn(500)

    def dish(self):
        return [self.rng.randrange(500) for _ in range(12)]

    def batch(self):
        pair = torch.tensor([[self.dish() for _ in range(256)] for _ in range(2)])
        better = self.liking[pair[0]].mean(-1) > self.liking[pair[1]].mean(-1)
        return pair, better

    def step(self):
        pair, better = self.batch()
        margin = self.rank(pair[0]) - self.rank(pair[1])
        loss = nn.functional.binary_cross_entropy_with_logits(margin, better.float())
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        return loss


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=570)
    args = ap.parse_args()
    torch.manual_seed(17)
    trainer = Trainer(batches_per_epoch=40)
    for step in range(args.steps):
        loss = trainer.step()
        if (step + 1) % trainer.batches_per_epoch == 0:
            print(f"epoch {(step + 1) // trainer.batches_per_epoch:3d} loss {loss.item():.4f}")
            free_memory()


if __name__ == "__main__":
    main()
