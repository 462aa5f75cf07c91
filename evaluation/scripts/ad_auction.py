"""Second-price auctions for places on a page; who bids depends on who reads."""
import argparse
import random
from collections import deque
from dataclasses import dataclass, field

import torch


@dataclass
class Request:
    reader: torch.Tensor
    bids: list = field(default_factory=list)


class Exchange:
    def __init__(self, hours=96, width=128):
        self.taste = torch.randn(width)
        self.season = torch.sin(torch.arange(hours)[:, None] * 0.26) * 0.3
        self.waiting = deque()
        self.clear = torch.compile(self._clear)

    def value(self, reader, bid):
        interest = torch.tanh(bid * reader) * torch.exp(-(bid - self.season).square())
        return torch.sigmoid(interest * self.taste) * torch.log1p(bid.square())

    def _clear(self, request):
        values = [self.value(request.reader, bid) for bid in request.bids]
        offers = torch.stack([value.mean() for value in values])
        second = float(offers.sort().values[-2])
        chance = torch.zeros_like(values[0])
        for value in values:
            chance = chance + torch.sigmoid(8 * (value - second)) * torch.cos(value)
        return second * torch.tanh(chance).mean()

    def serve(self):
        income = 0.0
        while self.waiting:
            income += self.clear(self.waiting.popleft())
        return income


class Readers:
    def __init__(self, seed, bidders=40, hours=96, width=128):
        self.random = random.Random(seed)
        self.readers = torch.randn(32, width)
        self.bidders = torch.rand(bidders, hours, width).unbind()

    def arrive(self):
        bids = self.random.sample(self.bidders, self.random.randint(3, 18))
        return Request(self.readers[self.random.randrange(32)], bids)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=24000)
    parser.add_argument("--at-once", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(0)
    exchange, readers, income = Exchange(), Readers(seed=12), 0.0
    with torch.inference_mode():
        for number in range(0, args.requests, args.at_once):
            exchange.waiting.extend(readers.arrive() for _ in range(args.at_once))
            income += exchange.serve()
            if number % 2000 == 0:
                print(f"{number} requests, income {float(income):.2f}", flush=True)


if __name__ == "__main__":
    main()
