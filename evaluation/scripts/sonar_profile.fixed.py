"""Side-scan sonar strip enhancement with a running account of where the time goes."""
import os
import contextlib
import time

import torch
import torch.nn as nn

torch.manual_seed(21)

PINGS = 256
RANGE = 768
STEPS = int(os.environ.get("STEPS", "5000"))
LOG = 200

ledger = {}


@contextlib.contextmanager
def stage(name):
    begin = time.perf_counter()
    try:
        yield
    finally:
        ledger[name] = ledger.get(name, 0.0) + time.perf_counter() - begin


class Enhance(nn.Module):
    def __init__(self):
        super().__init__()
        r = torch.linspace(0.05, 1.0, RANGE)
        self.register_buffer("spread", 20.0 * torch.log10(r) + 4.0 * r)
        self.knee = nn.Parameter(torch.tensor(0.4))
        self.alpha = nn.Parameter(torch.full((RANGE,), 0.8))

    def forward(self, echo):
        level = torch.asinh(echo * 30.0) + 0.1 * self.spread
        level = level - level.mean(1, keepdim=True)
        ref = torch.trunc(level * 8.0) / 8.0
        level = level + torch.exp(-(level - ref).square() * 40.0) * (ref - level)
        out = torch.tanh(level * self.alpha) / (1.0 + self.knee * level * level)
        out = (out - out.amin(1, keepdim=True)) / (out.amax(1, keepdim=True) - out.amin(1, keepdim=True) + 1e-4)
        return out


def main():
    net = torch.compile(Enhance().eval().requires_grad_(False))
    strips = [torch.rand(PINGS, RANGE).square() for _ in range(8)]
    t0 = time.perf_counter()
    for step in range(1, STEPS + 1):
        with stage("enhance"):
            picture = net(strips[step % len(strips)])
        if step % LOG == 0:
            dt = (time.perf_counter() - t0) / LOG * 1e3
            shares = " ".join(f"{k} {v / step * 1e3:.2f}" for k, v in ledger.items())
            print(f"strip {step} contrast {picture.std().item():.4f} {dt:.3f} ms/step | {shares}")
            t0 = time.perf_counter()


if __name__ == "__main__":
    main()
