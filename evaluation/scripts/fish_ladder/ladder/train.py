import itertools

import torch
import torch.nn.functional as F


def forever(loader):
    while True:
        yield from loader


class Trainer:
    def __init__(self, net):
        self.net = torch.compile(net)
        self.optimizer = torch.optim.SGD(net.parameters(), 0.02, momentum=0.9)

    def step(self, clip, count):
        loss = F.poisson_nll_loss(self.net(clip), count, log_input=False)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss

    def run(self, loader, steps):
        for n, (clip, count) in enumerate(itertools.islice(forever(loader), steps), 1):
            loss = self.step(clip, count)
            if n % 250 == 0:
                print(f"{n:5d} {loss.item():.4f}")
