"""Route support tickets to teams; tickets are answered in the groups in which they arrive."""
import argparse
import random
import time
from collections import deque
from typing import NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F

TEAMS = ["billing", "login", "shipping", "returns", "outage", "legal", "other"]


class Ticket(NamedTuple):
    number: int
    tokens: torch.Tensor


class Router(nn.Module):
    def __init__(self, words=4096, width=96):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.place = nn.Parameter(torch.randn(48, width) * 0.1)
        self.gate = nn.Linear(width, width)
        self.team = nn.Linear(width, len(TEAMS))

    def forward(self, tokens):
        h = self.words(tokens) + self.place
        h = torch.tanh(h) * torch.exp(-h.square()) + torch.sin(h)
        weight = F.softmax(self.gate(h), dim=1)
        pooled = (weight * F.gelu(h)).sum(dim=1)
        return F.log_softmax(self.team(pooled), dim=-1)


class Desk:
    def __init__(self):
        self.router = torch.compile(Router().eval())
        self.inbox = deque()
        self.slowest = 0.0

    def arrive(self, ticket):
        self.inbox.append(ticket)

    def answer(self):
        tickets = list(self.inbox)
        self.inbox.clear()
        begin = time.monotonic()
        with torch.inference_mode():
            scores = self.router(torch.stack([ticket.tokens for ticket in tickets]))
        self.slowest = max(self.slowest, time.monotonic() - begin)
        return zip(tickets, scores.argmax(-1).tolist())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30000)
    parser.add_argument("--most", type=int, default=96)
    args = parser.parse_args()
    torch.manual_seed(0)
    rng = random.Random(7)
    texts = torch.randint(4096, (200, 48)).unbind()
    desk, routed, number = Desk(), [0] * len(TEAMS), 0
    for _ in range(args.rounds):
        for _ in range(rng.randint(12, args.most)):
            desk.arrive(Ticket(number, texts[number % len(texts)]))
            number += 1
        for ticket, team in desk.answer():
            routed[team] += 1
    for team, many in zip(TEAMS, routed):
        print(f"{team:10s} {many}")


if __name__ == "__main__":
    main()
