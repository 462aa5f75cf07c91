import argparse
import random
from collections import deque
from dataclasses import dataclass

import torch
from torch import nn

BATCH, LENGTH, WIDTH = 32, 24, 64


@dataclass
class Request:
    number: int
    rows: torch.Tensor


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(12, WIDTH)
        self.mix = nn.Linear(LENGTH, LENGTH)
        self.feed = nn.Linear(WIDTH, WIDTH)
        self.score = nn.Linear(WIDTH, 1)

    def forward(self, rows):
        h = torch.tanh(self.embed(rows))
        h = h + torch.sigmoid(self.mix(h.transpose(1, 2)).transpose(1, 2)) * h
        h = h + torch.nn.functional.silu(self.feed(h)) * torch.cos(h)
        return self.score(h.amax(dim=1)).squeeze(-1)


class Service:
    def __init__(self, model):
        self.model = torch.compile(model.eval())
        self.queue = deque()
        self.buffer = torch.zeros(BATCH, LENGTH, 12)

    def submit(self, request):
        self.queue.append(request)

    @torch.inference_mode()
    def drain(self):
        taken = [self.queue.popleft() for _ in range(min(BATCH, len(self.queue)))]
        stacked = torch.stack([request.rows for request in taken])
        self.buffer.zero_()
        self.buffer[: len(taken)] = stacked
        return taken, self.model(self.buffer)[: len(taken)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=2000000)
    args = parser.parse_args()
    torch.manual_seed(0)
    rng = random.Random(0)
    service = Service(Scorer())
    pool = torch.randn(64, LENGTH, 12).unbind()
    arrived = answered = 0
    while answered < args.requests:
        for _ in range(rng.randint(20, BATCH)):
            service.submit(Request(arrived, pool[arrived % len(pool)]))
            arrived += 1
        taken, scores = service.drain()
        answered += len(taken)
    print(f"answered {answered}, last score {scores[-1]:.4f}")


if __name__ == "__main__":
    main()
