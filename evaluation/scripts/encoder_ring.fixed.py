"""Circular lag features and a periodic stencil loss for wheel-speed encoder rings."""
import os
import time

import torch
import torch.nn.functional as F
from torch import nn

RING = 1440
BATCH = 20


def shift(x, k):
    k = k % x.shape[-1]
    return torch.cat([x[..., x.shape[-1] - k:], x[..., : x.shape[-1] - k]], dim=-1)


def lagged(signal, lags):
    return torch.stack([shift(signal, k) for k in lags], dim=1)


class RingFilter(nn.Module):
    """Learned phase filter on one revolution of an encoder ring."""

    def __init__(self, lags=(-8, -3, -1, 0, 1, 3, 8), hidden=6):
        super().__init__()
        self.lags = lags
        self.mix = nn.Parameter(torch.randn(hidden, len(lags)) / len(lags) ** 0.5)
        self.bias = nn.Parameter(torch.zeros(hidden, 1))
        self.out = nn.Parameter(torch.randn(hidden) / hidden)

    def forward(self, ring):
        feats = torch.tanh(lagged(ring, self.lags))
        h = F.silu(self.mix @ feats + self.bias)
        return ring + torch.einsum("h,bhn->bn", self.out, h)


class RingLoss(nn.Module):
    def __init__(self, smooth=0.05):
        super().__init__()
        self.smooth = smooth

    def forward(self, pred, target):
        bend = shift(pred, 1) + shift(pred, -1) - 2.0 * pred
        return F.mse_loss(pred, target) + self.smooth * bend.square().mean()


class Objective(nn.Module):
    def __init__(self):
        super().__init__()
        self.filter = RingFilter()
        self.loss = RingLoss()

    def forward(self, ring, target):
        return self.loss(self.filter(ring), target)


def revolutions(gen, count):
    angle = torch.arange(RING) * (6.283185 / RING)
    for _ in range(count):
        amp = torch.rand(BATCH, 4, 1, generator=gen)
        order = torch.randint(1, 12, (BATCH, 4, 1), generator=gen)
        phase = 6.28 * torch.rand(BATCH, 4, 1, generator=gen)
        clean = (amp * torch.sin(order * angle + phase)).sum(1)
        teeth = 0.2 * torch.sign(torch.sin(60.0 * angle))
        yield clean + teeth, clean


def main():
    torch.manual_seed(0)
    steps = int(os.environ.get("STEPS", "240"))
    data = list(revolutions(torch.Generator().manual_seed(2), 16))
    objective = Objective()
    train_loss = torch.compile(objective)
    opt = torch.optim.Adam(objective.parameters(), lr=5e-3)

    times = []
    for step in range(steps):
        ring, target = data[step % len(data)]
        t0 = time.perf_counter()
        loss = train_loss(ring, target)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        times.append(time.perf_counter() - t0)

    tail = sorted(times[len(times) // 2:])
    print(f"loss {loss.item():.5f}  median step {1e3 * tail[len(tail) // 2]:.2f} ms")


if __name__ == "__main__":
    main()
