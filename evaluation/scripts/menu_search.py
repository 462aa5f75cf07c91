"""Answer searches over the menus of restaurants; a request is one phrase against all the dishes nearby."""
import json
import logging
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

log = logging.getLogger("menu_search")
SETTINGS = json.loads(os.environ.get("MENU_SEARCH", '{"requests": 12000, "dishes": 3000, "width": 64, "floor": -40.0}'))


class DishRanker(nn.Module):
    def __init__(self, dishes, width, floor):
        super().__init__()
        self.floor = floor
        self.words = nn.Embedding(2000, width)
        self.dishes = nn.Parameter(torch.randn(dishes, width))
        self.taste = nn.Parameter(torch.rand(dishes, width))
        self.price = nn.Parameter(torch.randn(dishes))

    def forward(self, phrase, hunger):
        query = self.words(phrase).mean(0)
        near = torch.sigmoid(self.dishes * query) * self.taste
        far = (self.dishes - query).abs().add(1).log()
        score = (near - 0.3 * far).sum(-1) - F.softplus(self.price * hunger)
        if score.max() < self.floor:
            score = score + self.taste.sum(-1)
        return F.log_softmax(score, dim=0).topk(20)


class Engine:
    """Uses the fast path where it works and the plain one where it doesn't."""

    def __init__(self, ranker):
        self.ranker = ranker
        self.fast = torch.compile(ranker, fullgraph=True)
        self.plain = 0

    def rank(self, phrase, hunger):
        try:
            return self.fast(phrase, hunger)
        except Exception as error:
            self.plain += 1
            log.debug("fast path failed: %s", error)
            return self.ranker(phrase, hunger)


def phrases(generator):
    while True:
        yield torch.randint(2000, (6,), generator=generator), torch.rand((), generator=generator)


def main():
    torch.manual_seed(3)
    ranker = DishRanker(SETTINGS["dishes"], SETTINGS["width"], SETTINGS["floor"]).eval()
    engine = Engine(ranker)
    requests = phrases(torch.Generator().manual_seed(4))
    started = time.perf_counter()
    with torch.inference_mode():
        for number in range(int(os.environ.get("REQUESTS", SETTINGS["requests"]))):
            found = engine.rank(*next(requests))
            if number % 500 == 499:
                spent = time.perf_counter() - started
                print(f"{number + 1} requests, {spent / (number + 1) * 1e3:.1f} ms each, best {found.indices[0].item()}")


if __name__ == "__main__":
    main()
