"""Train a gated residual surrogate for an airfoil polar table and report the
arithmetic rate the run reached."""
import argparse
import math
import time

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode


class GatedBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.RMSNorm(width)
        self.inner = nn.Linear(width, 2 * width)
        self.outer = nn.Linear(width, width)

    def forward(self, x):
        a, b = self.inner(self.norm(x)).chunk(2, dim=-1)
        h = torch.tanh(a) * torch.sigmoid(b) + 0.1 * torch.sin(a) * torch.cos(b)
        return x + self.outer(h) / math.sqrt(2.0)


class Surrogate(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.lift = nn.Linear(12, width)
        self.blocks = nn.Sequential(*[GatedBlock(width) for _ in range(depth)])
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        features = torch.cat([x, torch.sin(3 * x), torch.cos(3 * x), x * x], dim=-1)
        return self.head(self.blocks(self.lift(features)))


def polar_table(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.rand(n, 3, generator=g) * 2 - 1
    alpha, mach, re = x.unbind(-1)
    cl = 1.1 * torch.sin(1.7 * alpha) / torch.sqrt(1.05 - 0.5 * mach * mach)
    cd = 0.01 + 0.05 * cl * cl + 0.004 * torch.exp(-re)
    cm = -0.25 * cl + 0.03 * torch.cos(2 * alpha)
    return x, torch.stack([cl, cd, cm], dim=-1)


class Run:
    def __init__(self, args):
        self.args = args
        torch.manual_seed(1)
        self.net = Surrogate(args.width, args.depth)
        self.step_fn = torch.compile(self.net)
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=2e-3, fused=True)
        self.x, self.y = polar_table(65536, 0)
        self.counter = FlopCounterMode(display=False)

    def batches(self):
        g = torch.Generator().manual_seed(5)
        for _ in range(self.args.steps):
            pick = torch.randint(0, self.x.shape[0], (self.args.batch,), generator=g)
            yield self.x[pick], self.y[pick]

    def fit(self):
        began = time.perf_counter()
        for i, (x, y) in enumerate(self.batches()):
            loss = nn.functional.smooth_l1_loss(self.step_fn(x), y)
            loss.backward()
            self.opt.step()
            self.opt.zero_grad(set_to_none=True)
            if i % 200 == 0:
                print(f"step {i:5d} loss {loss.item():.5f}")
        seconds = time.perf_counter() - began
        with self.counter:
            self.net(self.x[: self.args.batch]).sum().backward()
        total = self.counter.get_total_flops() * self.args.steps
        print(f"{total / seconds / 1e9:.2f} GFLOP/s over {seconds:.1f} s")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=900)
    ap.add_argument("--batch", type=int, default=2048)
    ap.add_argument("--width", type=int, default=64)
    ap.add_argument("--depth", type=int, default=3)
    Run(ap.parse_args()).fit()


if __name__ == "__main__":
    main()
