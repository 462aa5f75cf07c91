"""Quote freight; every lane has its own formula."""
import argparse
import enum
import itertools

import torch


class Lane(enum.Enum):
    OSLO = 1.1
    GDANSK = 1.2
    PORTO = 1.3
    IZMIR = 1.4
    VARNA = 1.5
    GENOA = 1.6
    MALMO = 1.7
    CORK = 1.8
    TALLINN = 1.9
    SPLIT = 2.0
    LE_HAVRE = 2.1
    BREMEN = 2.2


class Desk:
    def __init__(self, goods=400, features=96):
        self.weight = torch.rand(goods, features)
        self.quote = torch.compile(self._quote)

    def _quote(self, volume, lane):
        load = torch.log1p(self.weight * volume) * lane.value
        risk = torch.exp(-load.square()) * torch.sin(load) + torch.sigmoid(load)
        return (load + risk).mean(-1)

    @torch.no_grad()
    def day(self, orders):
        volume = torch.rand(400, 96)
        total = torch.zeros(400)
        for lane in itertools.islice(itertools.cycle(Lane), orders):
            total += self.quote(volume, lane)
        return total.mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--orders", type=int, default=60000)
    args = parser.parse_args()
    torch.manual_seed(0)
    print(Desk().day(args.orders))


if __name__ == "__main__":
    main()
