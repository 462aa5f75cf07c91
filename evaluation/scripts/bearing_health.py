"""Train a dense regressor for remaining bearing life from vibration envelopes."""
import os
import time

import numpy as np
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(12)

BATCH, FEATURES, HIDDEN = 256, 256, 768
STEPS = int(os.environ.get("STEPS", "1000"))


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.a = nn.Linear(width, width)
        self.b = nn.Linear(width, width)

    def forward(self, x):
        return x + self.b(torch.nn.functional.silu(self.a(self.norm(x))))


class LifeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(FEATURES, HIDDEN)
        self.body = nn.Sequential(*[Residual(HIDDEN) for _ in range(2)])
        self.head = nn.Linear(HIDDEN, 2)

    def forward(self, x):
        mean, logvar = self.head(self.body(self.stem(x))).unbind(-1)
        return mean, logvar.clamp(-6, 4)


def nll(net, x, y):
    mean, logvar = net(x)
    return (0.5 * ((y - mean).square() * torch.exp(-logvar) + logvar)).mean()


def batches(seed):
    rng = np.random.default_rng(seed)
    proj = rng.normal(size=(FEATURES,)).astype(np.float32) / 16
    while True:
        x = rng.standard_normal((BATCH, FEATURES), dtype=np.float32)
        y = np.tanh(x @ proj) + 0.1 * rng.standard_normal(BATCH, dtype=np.float32)
        yield torch.from_numpy(x), torch.from_numpy(y.astype(np.float32))


def main():
    net = LifeNet()
    opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, STEPS)
    loss_fn = torch.compile(nll)
    feed = batches(5)

    def step():
        x, y = next(feed)
        opt.zero_grad(set_to_none=True)
        loss = loss_fn(net, x, y)
        loss.backward()
        opt.step()
        return loss.detach()

    for _ in range(3):
        step()
    spans, running = [], 0.0
    for n in range(STEPS):
        t0 = time.perf_counter()
        loss = step()
        spans.append(time.perf_counter() - t0)
        sched.step()
        running = loss if n == 0 else 0.98 * running + 0.02 * loss
        if n % 250 == 0:
            print(f"batch {n} nll {running.item():.4f} lr {sched.get_last_lr()[0]:.4f}")

    print(f"median step {np.median(spans) * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
