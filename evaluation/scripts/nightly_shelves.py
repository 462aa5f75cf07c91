"""Fills the shelves of a shop's start page by night: scores all offers for each group of customers."""
import configparser
import os

import torch
import torch.nn.functional as F
from torch import nn

SETTINGS = """
[shop]
offers = 500
width = 24
customers = 16384
keep = 0.97
"""


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.into, self.back = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        wide = F.silu(self.into(x))
        return self.norm(x + torch.tanh(self.back(wide * torch.sigmoid(wide))))


class Taste(nn.Module):
    def __init__(self, offers, width, depth=4):
        super().__init__()
        self.offers = nn.Parameter(torch.randn(offers, width) * 0.4)
        self.layers = nn.Sequential(*[Layer(width) for _ in range(depth)])

    def forward(self, customers, budget):
        liking = self.layers(customers)[:64] @ self.offers.T
        return liking * torch.sigmoid(liking - budget[:64, None])


class NightJob:
    def __init__(self, settings):
        shop = settings["shop"]
        self.taste = Taste(shop.getint("offers"), shop.getint("width"))
        self.taste.eval()
        torch.no_grad()
        self.rank = torch.compile(self.shelf)
        self.keep, self.sold = shop.getfloat("keep"), torch.zeros(shop.getint("offers"))

    def shelf(self, customers, budget):
        score = self.taste(customers, budget)
        best = score.amax(1)
        return score.mean(0), best, torch.argwhere(best > 2.5)[:, 0]

    def run(self, groups):
        for customers, budget in groups:
            popular, best, eager_buyers = self.rank(customers, budget)
            self.sold = self.keep * self.sold + popular.data
            yield len(eager_buyers)


def groups(count, customers, width):
    torch.manual_seed(21)
    stored = [(torch.randn(customers, width), torch.rand(customers)) for _ in range(6)]
    for number in range(count):
        yield stored[number % 6]


def main():
    settings = configparser.ConfigParser()
    settings.read_string(SETTINGS)
    shop = settings["shop"]
    job = NightJob(settings)
    count = int(os.environ.get("NIGHT_GROUPS", 2500))
    buyers = sum(job.run(groups(count, shop.getint("customers"), shop.getint("width"))))
    print(buyers, "likely buyers; best offers", job.sold.topk(5).indices.tolist())


if __name__ == "__main__":
    main()
