"""Limit-order-book replay: keeps a dense book per instrument, applies the exchange
messages in bursts and scores the touched instruments with a small short-horizon model."""
import os
import argparse
import time

import torch
import torch.nn as nn

torch.set_num_threads(1)

N_INSTR, N_LEVELS = 20000, 256
BURST = 640
HEADER = 2


class TickModel(nn.Module):
    """Scores an instrument from its current book row."""

    def __init__(self, levels: int, hidden: int = 96):
        super().__init__()
        self.norm = nn.LayerNorm(levels)
        self.inp = nn.Linear(levels, hidden)
        self.mid = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, 3)

    def forward(self, rows):
        h = torch.tanh(self.inp(self.norm(rows)))
        h = h + torch.nn.functional.silu(self.mid(h))
        return self.out(h)


class Replay:
    def __init__(self, seed: int):
        g = torch.Generator().manual_seed(seed)
        self.gen = g
        self.book = torch.rand(N_INSTR, N_LEVELS, generator=g)
        self.model = TickModel(N_LEVELS).eval()
        self.bursts = [self._burst() for _ in range(32)]
        self.apply = torch.compile(self._apply)

    def _burst(self):
        ids = torch.randint(0, N_INSTR, (BURST,), generator=self.gen)
        lvl = torch.randint(HEADER, N_LEVELS, (BURST,), generator=self.gen)
        qty = torch.rand(BURST, generator=self.gen)
        head = torch.rand(64, HEADER, generator=self.gen)
        return ids, lvl, qty, head

    def _apply(self, book, ids, lvl, qty, head):
        # the first rows are the index futures, they get a fresh header on each burst
        book[:64, :HEADER] = head * 0.5 + 0.25
        book[ids, lvl] = qty.clamp(0.0, 1.0)
        logits = self.model(book[ids])
        return logits.softmax(-1)

    @torch.no_grad()
    def step(self, k: int):
        ids, lvl, qty, head = self.bursts[k % len(self.bursts)]
        return self.apply(self.book, ids, lvl, qty, head)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--bursts", type=int, default=int(os.environ.get("STEPS", "7000")))
    ap.add_argument("--seed", type=int, default=11)
    args = ap.parse_args()
    torch.manual_seed(args.seed)

    replay = Replay(args.seed)
    for k in range(10):
        replay.step(k)

    ups = torch.zeros(())
    t0 = time.perf_counter()
    for k in range(args.bursts):
        probs = replay.step(k)
        ups += probs[:, 2].mean()
        if (k + 1) % 2000 == 0:
            print(f"burst {k + 1:6d}  mean up-probability {ups.item() / (k + 1):.4f}")
    dt = time.perf_counter() - t0
    print(f"book checksum {replay.book.double().sum().item():.3f}")
    print(f"{dt / args.bursts * 1e3:.3f} ms per burst")


if __name__ == "__main__":
    main()
