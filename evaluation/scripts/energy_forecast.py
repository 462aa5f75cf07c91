"""Train a gated forecaster of household load and report the arithmetic it took."""
import os
import time

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

BATCH, LAGS, HIDDEN = 512, 48, 96
STEPS = int(os.environ.get("STEPS", "240"))


def load_series(n=20_000, seed=5):
    g = torch.Generator().manual_seed(seed)
    t = torch.arange(n, dtype=torch.float32)
    daily = torch.sin(2 * torch.pi * t / 48) + 0.4 * torch.sin(2 * torch.pi * t / 336)
    return daily + 0.2 * torch.randn(n, generator=g)


class GatedBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix = nn.Linear(width, width)
        self.gain = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        h = self.mix(x)
        h = (h - h.mean(-1, keepdim=True)) * torch.rsqrt(h.var(-1, keepdim=True) + 1e-5)
        h = h * self.gain + self.shift
        gate = torch.sigmoid(1.3 * h) * torch.tanh(h)
        return x + gate * torch.cos(0.5 * h) * torch.exp(-0.1 * h * h)


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(LAGS, HIDDEN)
        self.blocks = nn.ModuleList(GatedBlock(HIDDEN) for _ in range(4))
        self.out = nn.Linear(HIDDEN, 1)

    def forward(self, x):
        h = self.inp(x)
        for block in self.blocks:
            h = block(h)
        return self.out(h).squeeze(-1)


def sample_batch(series, g):
    start = torch.randint(0, series.numel() - LAGS - 1, (BATCH,), generator=g)
    windows = series.unfold(0, LAGS + 1, 1)[start]
    return windows[:, :LAGS], windows[:, LAGS]


def train_step(model, opt, x, y):
    loss = nn.functional.smooth_l1_loss(model(x), y)
    loss.backward()
    opt.step()
    opt.zero_grad(set_to_none=True)
    return loss.detach()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(1)
    series = load_series()
    net = Forecaster()
    model = torch.compile(net)
    opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    losses = []
    flops = FlopCounterMode(display=False)
    started = time.perf_counter()
    with flops:
        for step in range(STEPS):
            x, y = sample_batch(series, g)
            losses.append(train_step(model, opt, x, y))
    took = time.perf_counter() - started
    total = flops.get_total_flops()
    print(f"{STEPS} steps in {took:.2f} s, loss {float(torch.stack(losses[-20:]).mean()):.4f}, "
          f"{total / 1e9:.2f} GFLOP in all")


if __name__ == "__main__":
    main()
