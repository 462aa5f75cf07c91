"""Replay tournament games one after another and update the ratings of the two players."""
import os
import time

import torch

STEPS = int(os.environ.get("STEPS", "8000"))
GAMES = 60


@torch.compile
def update(a, b, result):
    expect = torch.sigmoid((a - b) * 0.00575)
    delta = 16.0 * (result - expect)
    return a + delta, b - delta


def play_round(ratings, pairs, results):
    for g in range(GAMES):
        i, j = pairs[g]
        ratings[i], ratings[j] = update(ratings[i], ratings[j], results[g])
    return ratings


def main():
    torch.manual_seed(15)
    torch.set_num_threads(1)
    ratings = [torch.full((4,), 1500.0) for _ in range(GAMES * 2)]
    pairs = [(2 * g, (2 * g + 7) % (2 * GAMES)) for g in range(GAMES)]
    t0 = time.perf_counter()
    for step in range(STEPS):
        results = list(torch.randint(0, 3, (GAMES, 4)).float().div(2).unbind(0))
        ratings = play_round(ratings, pairs, results)
        if (step + 1) % 100 == 0:
            t1 = time.perf_counter()
            top = max(float(r.max()) for r in ratings)
            print(f"round {step + 1} top {top:.0f} {(t1 - t0) / 100 * 1e3:.2f} ms/step", flush=True)
            t0 = t1


if __name__ == "__main__":
    main()
