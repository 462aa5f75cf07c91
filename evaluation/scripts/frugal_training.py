"""Federated toy: ten clients, each with its own slope, checkpointed blocks."""
import os
import time
import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(29)

CLIENTS, DIM, ROWS = 10, 48, 3000
STEPS = 260
STEPS = int(os.environ.get("STEPS", STEPS))


def bend(h, a):
    h = torch.sin(h) * h.cos() + torch.tanh(a * h)
    return h * torch.rsqrt(h.square().mean(-1, keepdim=True) + 1e-5)


class Client(nn.Module):
    def __init__(self, slope):
        super().__init__()
        self.slope = slope
        self.a = nn.Linear(DIM, DIM)
        self.b = nn.Linear(DIM, DIM)

    def body(self, x):
        return bend(self.b(bend(self.a(x), self.slope)), self.slope)

    def forward(self, x):
        return checkpoint(self.body, x, use_reentrant=False).mean(1)


class Meter:
    def __init__(self):
        self.values = []

    def attach(self, module):
        def note(mod, inp, out):
            self.values.append(out.detach())
        return module.register_forward_hook(note)


def main():
    nets = [Client(0.5 + 0.1 * i) for i in range(CLIENTS)]
    fast = [torch.compile(n) for n in nets]
    opts = [torch.optim.SGD(n.parameters(), lr=0.05, momentum=0.9) for n in nets]
    x = torch.randn(ROWS, DIM)
    y = torch.tanh(x[:, 0] - x[:, 1])
    lap = []
    for k in range(STEPS):
        i = k % CLIENTS
        meter = Meter()
        t0 = time.perf_counter()
        handle = meter.attach(fast[i])
        loss = (fast[i](x) - y).square().mean()
        loss.backward()
        opts[i].step()
        opts[i].zero_grad()
        handle.remove()
        lap.append(time.perf_counter() - t0)
        if k % 50 == 0:
            print(f"round {k:4d} client {i} loss {loss.item():.4f} out {meter.values[0].std():.4f}")
    lap = sorted(lap[STEPS // 2:])
    print(f"last loss {loss.item():.5f}")
    print(f"median step {lap[len(lap) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
