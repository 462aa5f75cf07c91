import torch

from .live import LiveModule


class Server:
    def __init__(self, fighters):
        self.fighters = fighters
        self.rules = LiveModule("arena.rules")

    def match(self, ticks):
        rules = self.rules.latest()
        place = torch.rand(self.fighters, 2) * 20
        health = torch.full((self.fighters,), 100.0)
        with torch.no_grad():
            for _ in range(ticks):
                place, health = rules.tick(place, health)
        return int((health > 0).sum())
