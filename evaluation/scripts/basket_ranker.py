"""Ranks what else might go into a shopping basket, request by request."""
import argparse
import collections
import queue
import threading

import torch
from torch import nn

Request = collections.namedtuple("Request", "customer items prices")


class CrossLayer(nn.Module):
    def __init__(self, width, rank):
        super().__init__()
        self.down = nn.Linear(width, rank, bias=False)
        self.up = nn.Linear(rank, width)
        self.gate = nn.Parameter(torch.zeros(width))

    def forward(self, first, x):
        crossed = first * self.up(self.down(x))
        mixed = torch.sigmoid(self.gate) * torch.tanh(crossed) + x
        return mixed * torch.rsqrt(mixed.square().mean(-1, keepdim=True) + 1e-6)


class BasketRanker(nn.Module):
    def __init__(self, customers=5000, items=20000, width=128, layers=4):
        super().__init__()
        self.customers = nn.Embedding(customers, width)
        self.items = nn.Embedding(items, width)
        self.price = nn.Linear(1, width)
        self.layers = nn.ModuleList([CrossLayer(2 * width, 16) for _ in range(layers)])
        self.score = nn.Linear(2 * width, 1)

    def forward(self, customer, items, prices):
        who = self.customers(customer).expand(items.shape[0], -1)
        what = self.items(items) + torch.nn.functional.softplus(self.price(prices.log1p()[:, None]))
        first = x = torch.cat([who, what], 1)
        for layer in self.layers:
            x = layer(first, x)
        return self.score(x).squeeze(1)


def shoppers(inbox, requests, candidates):
    generator = torch.Generator().manual_seed(5)
    for number in range(requests):
        count = 48 if number == 0 else candidates
        inbox.put(Request(torch.randint(0, 5000, (1,), generator=generator),
                          torch.randint(0, 20000, (count,), generator=generator),
                          torch.rand(count, generator=generator) * 30))
    inbox.put(None)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=8000)
    parser.add_argument("--candidates", type=int, default=2000)
    args = parser.parse_args()
    torch.manual_seed(5)
    ranker = BasketRanker().eval()
    ranker.compile()
    inbox = queue.Queue(maxsize=16)
    threading.Thread(target=shoppers, args=(inbox, args.requests, args.candidates), daemon=True).start()
    shown = collections.Counter()
    with torch.inference_mode():
        while (request := inbox.get()) is not None:
            best = ranker(request.customer, request.items, request.prices).topk(10).indices
            shown.update(request.items[best].tolist())
    print("most shown:", shown.most_common(3))


if __name__ == "__main__":
    main()
