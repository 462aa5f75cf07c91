"""Learn which book a reader takes next, from the shelves of a lending library."""
import argparse

import torch
from torch import nn
import torch.nn.functional as F


class Shelf(nn.Module):
    def __init__(self, books, width):
        super().__init__()
        self.books = nn.Embedding(books, width)
        self.taste = nn.Sequential(nn.Linear(width, 128), nn.GELU(), nn.Linear(128, width))

    def forward(self, read, borrowed, ignored):
        shelf = self.books(read)
        recent = torch.softmax(shelf.square().sum(-1), dim=1).unsqueeze(-1)
        reader = self.taste((recent * torch.tanh(shelf)).sum(1))
        liked = (reader * self.books(borrowed)).sum(-1)
        passed = (reader * self.books(ignored)).sum(-1)
        return -F.logsigmoid(liked - passed).mean()


class Library:
    def __init__(self, books, readers=4096, history=16):
        popular = torch.rand(readers, history + 2).pow(2)
        self.loans = (popular * books).long()

    def batch(self, size):
        rows = self.loans[torch.randint(len(self.loans), (size,))]
        return rows[:, :-2], rows[:, -2], rows[:, -1]


class Fitter:
    def __init__(self, model, lr, decay):
        self.model = torch.compile(model)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=decay)

    def fit(self, library, steps, size):
        smooth = None
        for step in range(steps):
            loss = self.model(*library.batch(size))
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if step % 100 == 0:
                value = loss.item()
                smooth = value if smooth is None else 0.9 * smooth + 0.1 * value
                print(f"step {step}: {smooth:.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--books", type=int, default=160000)
    parser.add_argument("--width", type=int, default=48)
    args = parser.parse_args()
    torch.manual_seed(0)
    fitter = Fitter(Shelf(args.books, args.width), lr=1e-3, decay=1e-4)
    fitter.fit(Library(args.books), args.steps, size=192)


if __name__ == "__main__":
    main()
