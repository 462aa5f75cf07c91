import torch

from .schedule import LEVELS, STRENGTH


class Process:
    def __init__(self, net, steps):
        self.net = net
        self.times = list(range(LEVELS - 1, -1, -LEVELS // steps))

    def sample(self, shape):
        x = torch.randn(shape)
        for t in self.times:
            keep = STRENGTH[t]
            x = self.step(x, t, keep).detach()
        return x

    def step(self, x, t, keep):
        noise = self.net(x, t)
        return keep ** 0.1 * (x - 0.05 * noise) + 0.02 * torch.randn_like(x)
