"""A recommender whose forward logs every call, as a service's code does."""
import logging

import torch
import torch.nn as nn
from steady import Steady, options

logger = logging.getLogger("recommender")


class Tower(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return self.norm(x + self.second(torch.nn.functional.silu(self.first(x))))


class Recommender(nn.Module):
    def __init__(self, items, width):
        super().__init__()
        self.items = nn.EmbeddingBag(items, width)
        self.towers = nn.ModuleList(Tower(width) for _ in range(4))
        self.score = nn.Linear(width, 128)
        self.layer_of_interest = 2

    def forward(self, history):
        x = self.items(history)
        for number, tower in enumerate(self.towers):
            x = tower(x)
            if number == self.layer_of_interest:
                logger.info("layer %d: %d users, width %d", number, *x.shape)
        return torch.softmax(self.score(x), -1).topk(10).indices


def main():
    args = options(cpu=6_000, cuda=10_000)
    logging.basicConfig(level=logging.WARNING)
    torch.manual_seed(0)
    width = 512 if args.device == "cuda" else 64
    model = torch.compile(Recommender(5_000, width).to(args.device).eval())
    histories = torch.randint(0, 5_000, (16, 32, 20), device=args.device)
    steady = Steady(args.steps, args.device)
    with torch.inference_mode():
        for step in range(args.steps):
            model(histories[step % 16])
            steady.step()
    steady.show()


if __name__ == "__main__":
    main()
