"""Learns to pitch the blades of tidal turbines: a robust fit to the loads that simulated tides put on them."""
import argparse
import time

import torch
from torch import nn
import torch.nn.functional as F


class Schedule:
    def __init__(self, first, last, updates):
        self.first, self.last, self.updates = first, last, updates

    def at(self, number):
        share = min(1.0, number / self.updates)
        return self.first + (self.last - self.first) * share


class Pilot(nn.Module):
    def __init__(self, senses=6):
        super().__init__()
        self.pitch = nn.Linear(senses, 1)
        self.stall = nn.Parameter(torch.tensor(0.7))

    def forward(self, senses):
        pitch = self.pitch(senses).squeeze(-1)
        return pitch / (1 + (pitch * self.stall).square())


def robust_loss(load, measured, calm, width):
    near = F.huber_loss(load, measured, delta=width, reduction="none")
    rough = torch.relu(load.abs() - 1.0) * 0.1
    swing = (load - calm).square() / (1 + (load - calm).abs())
    share = torch.where(measured > 0, 1.5 * near, near) / (1 + calm.square())
    return (share + rough + 0.05 * swing).mean()


class Learner:
    def __init__(self, args):
        torch.manual_seed(args.seed)
        self.pilot = Pilot()
        self.loss = torch.compile(robust_loss)
        self.width = Schedule(2.0, 0.5, 20_000)
        self.optimizer = torch.optim.SGD(self.pilot.parameters(), lr=1e-3)
        self.senses = torch.randn(args.moments, 6)
        self.measured = torch.randn(args.moments)
        self.calm = torch.randn(args.moments) * 0.2

    def update(self, number):
        load = self.pilot(self.senses)
        loss = self.loss(load, self.measured, self.calm, self.width.at(number))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=6000)
    parser.add_argument("--moments", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    learner = Learner(args)
    start = time.perf_counter()
    for number in range(args.updates):
        loss = learner.update(number)
        if number % 500 == 0:
            print(f"{number}: {float(loss):.4f} after {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
