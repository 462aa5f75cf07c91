"""Online session memory for a news recommender.

Each reader has a row in a state table. Every tick a batch of click events comes in: the
rows of the readers concerned are refreshed by a gated cell, the idle clock
of everybody moves on, and the batch is scored against the article embeddings.
"""
import os
import time

import torch
import torch.nn as nn

READERS = 24000
WIDTH = 128
CLOCK = 2          # leading columns: idle time, heat
BATCH = 96
ARTICLES = 400


class GatedCell(nn.Module):
    def __init__(self, width, event):
        super().__init__()
        self.gate = nn.Linear(width + event, 2 * (width - CLOCK))
        self.cand = nn.Linear(width + event, width - CLOCK)

    def forward(self, state, event):
        z, r = torch.sigmoid(self.gate(torch.cat([state, event], 1))).chunk(2, 1)
        body = state[:, CLOCK:]
        c = torch.tanh(self.cand(torch.cat([state[:, :CLOCK], body * r, event], 1)))
        return body + z * (c - body)


class SessionMemory(nn.Module):
    def __init__(self, event=32):
        super().__init__()
        self.cell = GatedCell(WIDTH, event)
        self.articles = nn.Parameter(torch.randn(ARTICLES, WIDTH - CLOCK) * 0.1)

    def tick(self, table, readers, event):
        rows = table[readers]
        body = self.cell(rows, event)
        scores = body @ self.articles.t()
        fresh = torch.cat([torch.zeros_like(rows[:, :CLOCK]), body], 1)
        table[readers] = fresh
        return scores.logsumexp(1).mean()


class ClickStream:
    def __init__(self, seed=5, event=32):
        self.gen = torch.Generator().manual_seed(seed)
        self.event = event

    def batch(self):
        readers = torch.randperm(READERS, generator=self.gen)[:BATCH]
        return readers, torch.randn(BATCH, self.event, generator=self.gen)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    steps = int(os.environ.get("STEPS", "240"))

    memory = SessionMemory().eval()
    tick = torch.compile(memory.tick)
    table = torch.zeros(READERS, WIDTH)
    stream = ClickStream()

    times, total = [], 0.0
    with torch.no_grad():
        for step in range(steps):
            readers, event = stream.batch()
            now = torch.tensor([float(step), float(step % 24) / 24])
            t0 = time.perf_counter()
            score = tick(table, readers, event)
            clock = table[readers, :CLOCK]
            table[:, :CLOCK] = now
            table[readers, :CLOCK] = clock
            times.append(time.perf_counter() - t0)
            total += float(score)

    times = sorted(times[len(times) // 2:])
    print(f"mean score {total / steps:.4f}  table norm {table[:, CLOCK:].norm():.3f}")
    print(f"median tick {times[len(times) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
