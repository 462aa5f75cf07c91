"""Scores a stream of feature vectors with the averaged ("teacher") weights of a residual tower.

The student keeps training in another process and ships its weights now and then; here only the
averages are needed, so the module itself is a skeleton on the meta device and the weights travel
as a plain dictionary.
"""
import os
import time

import torch
import torch.nn as nn
from torch.func import functional_call

device = "cuda"

WIDTH = 8192
BLOCKS = 24
BATCH = 8
REQUESTS = int(os.environ.get("STEPS", "6000"))
SNAPSHOT_EVERY = 2_000
DECAY = 0.995


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mix = nn.Linear(width, width)

    def forward(self, x):
        return x + torch.nn.functional.gelu(self.mix(self.norm(x)))


class Tower(nn.Module):
    def __init__(self, width, blocks):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))
        self.head = nn.Linear(width, 16)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x).float().softmax(-1)


def fresh_weights(skeleton):
    weights = {}
    for name, p in skeleton.named_parameters():
        if p.dim() == 2:
            w = torch.randn(p.shape, device=device, dtype=torch.bfloat16) * (0.5 / p.shape[1] ** 0.5)
        elif name.endswith("norm.weight"):
            w = torch.ones(p.shape, device=device, dtype=torch.bfloat16)
        else:
            w = torch.zeros(p.shape, device=device, dtype=torch.bfloat16)
        weights[name] = w
    return weights


def receive_snapshot(average, seed):
    """Folds a student snapshot into the running average, in place."""
    g = torch.Generator(device=device).manual_seed(seed)
    for w in average.values():
        if w.dim() != 2:
            continue
        noise = torch.randn(w.shape, device=w.device, dtype=w.dtype, generator=g)
        w.mul_(DECAY).add_(noise, alpha=(1 - DECAY) * 0.5 / w.shape[1] ** 0.5)


class Scorer:
    def __init__(self, skeleton, weights):
        self.skeleton = skeleton
        self.weights = weights
        self.run = torch.compile(self._forward, mode="reduce-overhead")

    def _forward(self, weights, features):
        return functional_call(self.skeleton, weights, (features,))

    def __call__(self, features):
        return self.run(self.weights, features)


def main():
    torch.manual_seed(31)
    with torch.device("meta"):
        skeleton = Tower(WIDTH, BLOCKS).eval().requires_grad_(False)
    weights = fresh_weights(skeleton)
    scorer = Scorer(skeleton, weights)
    feed = [torch.randn(BATCH, WIDTH, device=device, dtype=torch.bfloat16) for _ in range(16)]
    histogram = torch.zeros(16, device=device)

    for n in range(5):
        scorer(feed[n])
    torch.cuda.synchronize()
    start = time.perf_counter()
    for n in range(1, REQUESTS + 1):
        p = scorer(feed[n % len(feed)])
        histogram += p.sum(0)
        if n % SNAPSHOT_EVERY == 0:
            receive_snapshot(weights, seed=n)
            torch.cuda.synchronize()
            rate = (time.perf_counter() - start) / n * 1e3
            print(f"{n:6d} requests   {rate:.2f} ms each   most likely class {int(histogram.argmax())}")
    torch.cuda.synchronize()
    print("mass", [round(v, 3) for v in (histogram / histogram.sum()).tolist()])


if __name__ == "__main__":
    with torch.no_grad():
        main()
