"""Energy budget of tide-pool snails, checked against the day's heat ledger."""
import contextlib
import dataclasses
import os

import torch

STEPS = int(os.environ.get("STEPS", "10000"))
torch.manual_seed(7)


@dataclasses.dataclass
class Weather:
    sun: torch.Tensor
    wind: torch.Tensor


@contextlib.contextmanager
def season(scale):
    yield 1.0 + scale


def losses(body, w):
    yield torch.sigmoid(body) * w.wind
    yield torch.exp(-body * body) * 0.2
    yield torch.log1p(body.abs()) * 0.1


class Snail(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.tanh(x) * 0.9

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (1 - torch.tanh(x) ** 2)


@torch.compile
def budget(body, w):
    with season(0.2) as f:
        gain = w.sun * f
    for part in losses(body, w):
        gain = gain - part
    return Snail.apply(body + 0.05 * gain)


sky = [Weather(torch.rand(256, 1024), torch.rand(256, 1024)) for _ in range(4)]
start = torch.zeros(256, 1024, requires_grad=True)

for step in range(STEPS):
    out = budget(start, sky[step % 4])
    out.square().mean().backward()
    with torch.no_grad():
        start -= 5.0 * start.grad
        start.grad = None
    if step % 500 == 0:
        print(f"{step:6d} spread {out.std().item():.5f}")
