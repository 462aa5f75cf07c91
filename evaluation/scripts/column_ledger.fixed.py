"""Streaming ledger of sensor readings.

`book` holds one row per sensor and one column per time slot. Each tick we
replace one column and keep an exponentially smoothed surprise score.
"""
import os
import time
import torch

torch.manual_seed(3)

SENSORS = 20_000
SLOTS = 256
TICKS = 900
TICKS = int(os.environ.get("TICKS", TICKS))


def tick(book, score, reading, slot):
    by_time = book.t()
    old = by_time[slot]
    surprise = (reading - old).abs()
    score = 0.97 * score + 0.03 * torch.tanh(surprise)
    return score, reading + 0.1 * old


def readings(k):
    phase = torch.arange(SENSORS) * 1e-3
    return torch.sin(phase + 0.05 * k) + 0.1 * torch.randn(SENSORS)


def main():
    book = torch.randn(SENSORS, SLOTS)
    score = torch.zeros(SENSORS)
    step = torch.compile(tick)
    lap = []
    pool = [readings(k) for k in range(64)]
    for k in range(TICKS):
        slot = (7 * k + 3) % SLOTS
        t0 = time.perf_counter()
        score, fresh = step(book, score, pool[k % 64], slot)
        book[:, slot] = fresh
        lap.append(time.perf_counter() - t0)
        if k % 200 == 0:
            top = score.topk(3)
            print(f"tick {k:5d} most surprising sensors {top.indices.tolist()}")
    lap = sorted(lap[TICKS // 2:])
    print("ledger checksum", round(book.double().sum().item(), 3))
    print(f"median tick {lap[len(lap) // 2] * 1e3:.4f} ms")


if __name__ == "__main__":
    main()
