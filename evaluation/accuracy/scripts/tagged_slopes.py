"""Fits heights along a valley; the limit on how steep a gradient may be is widened as it learns."""

import os

import torch
from torch import nn

STEPS = int(os.environ.get("STEPS", "200"))
limit = {"steepest": 1e-4}


@torch.library.custom_op("slopes::limited", mutates_args=(), tags=(torch.Tag.cudagraph_unsafe,))
def limited(slope: torch.Tensor) -> torch.Tensor:
    steepest = limit["steepest"]
    return slope.clamp(-steepest, steepest)


@limited.register_fake
def _(slope):
    return torch.empty_like(slope)


class Limited(torch.autograd.Function):
    @staticmethod
    def forward(ctx, heights):
        return heights * 1.0

    @staticmethod
    def backward(ctx, slope):
        return limited(slope)


class Ridge(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(2, 256)
        self.height = nn.Linear(256, 64)

    def forward(self, points):
        return Limited.apply(self.height(torch.tanh(self.lift(points)))) ** 2


def main():
    torch.manual_seed(0)
    ridge = Ridge().cuda()
    fitted = torch.compile(ridge, mode="reduce-overhead")
    optimizer = torch.optim.SGD(ridge.parameters(), lr=0.05)
    points = torch.rand(512, 2, device="cuda")
    heights = torch.sin(points @ torch.rand(2, 64, device="cuda"))
    for step in range(STEPS):
        loss = (fitted(points) - heights).square().sum()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        limit["steepest"] *= 1.03
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}")


main()
