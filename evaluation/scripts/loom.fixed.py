"""Fault scan of woven fabric: the camera line is cut into overlapping strips, each scored as it comes."""
import os

import torch

STEPS = int(os.environ.get("STEPS", "10000"))
HEIGHT, LENGTH = 64, 4096
STRIP, STRIDE = 512, 448


class Weave:
    """Expected thread pattern, updated from strips without faults."""

    def __init__(self):
        y = torch.arange(HEIGHT)[:, None]
        x = torch.arange(STRIP)[None, :]
        self.pattern = torch.sin(y * 0.8) * torch.cos(x * 0.4)
        self.accepted = 0

    def absorb(self, strip, limit, score):
        if score < limit:
            self.pattern.lerp_(strip, 0.001)
            self.accepted += 1


def contrast(strip, pattern):
    d = strip - pattern
    edge = torch.tanh(3.0 * d) * torch.sigmoid(d)
    gloss = torch.exp(-d * d) + torch.log1p(d.abs())
    return edge * gloss + 0.1 * torch.erf(d) * torch.cos(d)


@torch.compile
def strip_scores(line, pattern):
    return list(strips(line, pattern))


def strips(line, pattern):
    for start in range(0, LENGTH - STRIP + 1, STRIDE):
        strip = line[:, start:start + STRIP]
        c = contrast(strip, pattern)
        yield strip, c.square().mean()


def inspect(line, weave, limit):
    flagged = 0
    last = 0.0
    for strip, score in strip_scores(line, weave.pattern):
        last = score.item()
        flagged += last >= limit
    weave.absorb(strip, limit, last)
    return flagged, last


def camera(seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.arange(HEIGHT)[:, None]
    x = torch.arange(LENGTH)[None, :]
    clean = torch.sin(y * 0.8) * torch.cos(x * 0.4)
    bank = [clean + 0.2 * torch.randn(HEIGHT, LENGTH, generator=g) for _ in range(12)]
    k = 0
    while True:
        yield bank[k % len(bank)]
        k += 1


def main():
    torch.manual_seed(0)
    weave = Weave()
    feed = camera(9)
    every = max(1, STEPS // 20)
    total = 0
    with torch.no_grad():
        for step in range(1, STEPS + 1):
            flagged, last = inspect(next(feed), weave, 1.2)
            total += flagged
            if step % every == 0:
                print(f"step {step}  flagged {total}  last {last:.4f}  accepted {weave.accepted}")


if __name__ == "__main__":
    main()
