"""Scores accounts in a transaction graph by a few rounds of gated message passing."""
import os
import time
from dataclasses import dataclass

import torch
import torch.nn as nn

STEPS = int(os.environ.get("STEPS", 6000))
NODES, EDGES, DIM = 2000, 12000, 32
torch.set_num_threads(1)


@dataclass
class Day:
    src: torch.Tensor
    dst: torch.Tensor
    amount: torch.Tensor


class Flow(nn.Module):
    def __init__(self, rounds=3):
        super().__init__()
        self.rounds = rounds
        self.keep = nn.Parameter(torch.full((DIM,), 0.8))
        self.gate = nn.Parameter(torch.randn(DIM) * 0.2)
        self.scale = nn.Parameter(torch.randn(DIM) * 0.1)

    def forward(self, state, day: Day):
        amount = torch.log1p(day.amount).unsqueeze(-1)
        for _ in range(self.rounds):
            h = state[day.src]
            msg = torch.tanh(h * self.scale + amount * self.gate) * torch.sigmoid(h - state[day.dst])
            got = torch.zeros_like(state).index_add(0, day.dst, msg)
            state = self.keep * state + (1 - self.keep) * torch.tanh(got)
        return state


def make_day(gen):
    return Day(torch.randint(0, NODES, (EDGES,), generator=gen),
               torch.randint(0, NODES, (EDGES,), generator=gen),
               torch.rand(EDGES, generator=gen) * 100)


def main():
    torch.manual_seed(23)
    gen = torch.Generator().manual_seed(24)
    flow = torch.compile(Flow().eval())
    days = [make_day(gen) for _ in range(7)]
    state = torch.randn(NODES, DIM)
    every = max(1, STEPS // 10)
    t0, s0 = None, 0
    with torch.no_grad():
        for step in range(STEPS):
            if step == 2:
                t0, s0 = time.perf_counter(), step
            state = flow(state, days[step % 7])
            if step > 2 and step % every == 0:
                ms = (time.perf_counter() - t0) / (step - s0) * 1e3
                top = state.abs().sum(1).topk(3).indices.tolist()
                print(f"day {step}: suspicious {top}  {ms:.3f} ms/step")
                t0, s0 = time.perf_counter(), step


if __name__ == "__main__":
    main()
