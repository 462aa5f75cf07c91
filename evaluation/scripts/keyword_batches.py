"""Keyword spotting for a fleet of microphones: whoever has spoken since the last tick goes into one batch."""
import argparse
from collections import deque

import torch
import torch.nn as nn


class Spotter(nn.Module):
    def __init__(self, bands=40, width=160, words=12):
        super().__init__()
        self.lift = nn.Linear(bands, width)
        self.mix = nn.Linear(width, width)
        self.gate = nn.Parameter(torch.randn(width) * 0.2)
        self.words = nn.Linear(width, words)

    def forward(self, bands):
        loud = torch.log1p(bands.square())
        h = self.lift((loud - loud.mean(1, keepdim=True)) / (loud.std(1, keepdim=True) + 1e-3))
        h = torch.tanh(h) * torch.sigmoid(h * self.gate) + torch.sin(h) * torch.exp(-h.square())
        h = self.mix(h)
        h = torch.nn.functional.gelu(h) * torch.cos(h * self.gate) - torch.expm1(-h.abs())
        return self.words(h.amax(1)).softmax(-1)


class Microphones:
    """Between six and eleven of them speak at a time."""

    def __init__(self, pool=64, frames=96, bands=40):
        self.waiting = deque()
        self.memory = torch.randn(pool, frames, bands)
        self.tick = 0

    def listen(self):
        count = 6 + (self.tick * 5) % 6
        for k in range(count):
            self.waiting.append((self.tick * 7 + k) % len(self.memory))
        self.tick += 1

    def batch(self):
        who = [self.waiting.popleft() for _ in range(len(self.waiting))]
        return who, self.memory[who]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ticks", type=int, default=18000)
    parser.add_argument("--report", type=int, default=1000)
    args = parser.parse_args()
    torch.manual_seed(0)
    spotter = torch.compile(Spotter().eval())
    microphones = Microphones()
    heard = torch.zeros(12)
    with torch.inference_mode():
        for tick in range(args.ticks):
            microphones.listen()
            who, bands = microphones.batch()
            torch._dynamo.mark_dynamic(bands, 0, min=2, max=32)
            heard += spotter(bands).sum(0)
            if (tick + 1) % args.report == 0:
                print(tick + 1, [round(v, 2) for v in (heard / heard.sum()).tolist()])


if __name__ == "__main__":
    main()
