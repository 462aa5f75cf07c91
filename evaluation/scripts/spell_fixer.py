"""Teach a small network to undo typing errors; the smoothing of its targets is turned down while it learns."""
import argparse
import math
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Recipe:
    letters: int = 40
    width: int = 128
    length: int = 48
    batch: int = 64
    rate: float = 0.02
    smooth_from: float = 0.2
    smooth_to: float = 0.02
    halflife: int = 2000


class Fixer(nn.Module):
    def __init__(self, recipe):
        super().__init__()
        self.letters = nn.Embedding(recipe.letters, recipe.width)
        self.left = nn.Parameter(0.3 * torch.randn(1, recipe.width))
        self.right = nn.Parameter(0.3 * torch.randn(1, recipe.width))
        self.out = nn.Linear(recipe.width, recipe.letters)

    def forward(self, typed):
        h = self.letters(typed)
        for left, right in zip(self.left, self.right):
            near = torch.roll(h, 1, 1) * torch.tanh(left) + torch.roll(h, -1, 1) * torch.tanh(right)
            h = h + torch.sigmoid(near) * torch.sin(near) + 0.1 * torch.tanh(h)
            h = h * torch.rsqrt(h.square().mean(-1, keepdim=True) + 1e-5)
        return self.out(h)


class Teacher:
    def __init__(self, recipe):
        self.recipe = recipe
        self.fixer = Fixer(recipe)
        self.optimizer = torch.optim.SGD(self.fixer.parameters(), recipe.rate)
        self.smoothing = recipe.smooth_from

    @torch.compile
    def objective(self, typed, meant):
        logits = self.fixer(typed)
        loss = F.cross_entropy(logits.flatten(0, 1), meant.flatten(), label_smoothing=self.smoothing)
        return loss, int((logits.argmax(-1) == meant).sum())

    def lesson(self, number, typed, meant):
        fade = math.exp(-number / self.recipe.halflife)
        self.smoothing = self.recipe.smooth_to + (self.recipe.smooth_from - self.recipe.smooth_to) * fade
        loss, right = self.objective(typed, meant)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return right


def typing(recipe, generator):
    while True:
        meant = torch.randint(recipe.letters, (recipe.batch, recipe.length), generator=generator)
        slips = torch.rand(meant.shape, generator=generator) < 0.1
        yield torch.where(slips, (meant + 1) % recipe.letters, meant), meant


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lessons", type=int, default=5000)
    args = parser.parse_args()
    torch.manual_seed(0)
    recipe = Recipe()
    teacher = Teacher(recipe)
    pages = typing(recipe, torch.Generator().manual_seed(1))
    right = 0
    for number in range(args.lessons):
        right += teacher.lesson(number, *next(pages))
        if number % 250 == 249:
            print(f"lesson {number + 1}: {right / 250 / recipe.batch / recipe.length:.1%} right")
            right = 0


if __name__ == "__main__":
    main()
