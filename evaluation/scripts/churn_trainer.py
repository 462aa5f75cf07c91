"""Customer churn model: periodic-feature MLP trained with a retrying trainer."""
import contextlib
import math
import os
import time

import torch
import torch.nn as nn

STEPS = int(os.environ.get("STEPS", 8000))
torch.set_num_threads(1)


class Periodic(nn.Module):
    def __init__(self, features, bands):
        super().__init__()
        self.freq = nn.Parameter(torch.randn(features, bands))

    def forward(self, x):
        v = 2 * math.pi * self.freq * x.unsqueeze(-1)
        return torch.cat((v.sin(), v.cos()), -1).flatten(1)


class ChurnNet(nn.Module):
    def __init__(self, features=24, bands=8, width=96):
        super().__init__()
        self.enc = Periodic(features, bands)
        self.a = nn.Linear(features * bands * 2, width)
        self.b = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        h = self.enc(x)
        h = nn.functional.mish(self.a(h))
        h = h + nn.functional.mish(self.b(h))
        return self.out(h).squeeze(-1)


class Trainer:
    def __init__(self, net):
        self.net = torch.compile(net)
        self.opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
        self.failures = 0

    @torch.compiler.disable
    def guarded(self, fn, *args):
        try:
            return fn(*args)
        except ArithmeticError as err:
            self.failures += 1
            print("step skipped:", err)
            return None

    def fit_batch(self, x, y):
        logits = self.net(x)
        loss = nn.functional.binary_cross_entropy_with_logits(logits, y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        value = loss.item()
        if not math.isfinite(value):
            raise ArithmeticError(f"loss {value}")
        return value


def main():
    torch.manual_seed(2)
    trainer = Trainer(ChurnNet())
    truth = torch.randn(24)
    every = max(1, STEPS // 10)
    t0, s0, avg = None, 0, None
    for step in range(STEPS):
        if step == 2:
            t0, s0 = time.perf_counter(), step
        x = torch.rand(256, 24)
        y = ((x * 3).sin() @ truth > 0).float()
        loss = trainer.guarded(trainer.fit_batch, x, y)
        if loss is not None:
            avg = loss if avg is None else 0.99 * avg + 0.01 * loss
        if step > 2 and step % every == 0:
            ms = (time.perf_counter() - t0) / (step - s0) * 1e3
            print(f"step {step}: loss {avg:.4f} failures {trainer.failures}  {ms:.3f} ms/step")
            t0, s0 = time.perf_counter(), step


if __name__ == "__main__":
    main()
