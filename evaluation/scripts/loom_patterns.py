"""Learns weaving drafts; threads are rounded to discrete colours on the way."""
import argparse

import torch
from torch import nn


class Snap(torch.autograd.Function):
    """Rounds to the nearest dye, passes gradients through, never too large."""

    @staticmethod
    def forward(ctx, x, dyes):
        ctx.dyes = dyes
        return torch.round(x * dyes) / dyes

    @staticmethod
    def backward(ctx, grad):
        size = grad.norm()
        if size > 1.0:
            grad = grad / size
        return grad, None


class Weave(nn.Module):
    def __init__(self, threads):
        super().__init__()
        self.warp = nn.Parameter(0.3 * torch.randn(threads))
        self.weft = nn.Parameter(0.3 * torch.randn(threads))

    def forward(self, x):
        x = torch.sin(self.warp * x) + x * torch.sigmoid(self.weft + x)
        return Snap.apply(x, 16)


class Draft(nn.Module):
    def __init__(self, threads=64, passes=10):
        super().__init__()
        self.passes = nn.Sequential(*[Weave(threads) for _ in range(passes)])
        self.out = nn.Linear(threads, 8)

    def forward(self, x):
        return self.out(self.passes(x))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=1000)
    args = ap.parse_args()
    torch.manual_seed(3)
    draft = Draft()
    optimiser = torch.optim.SGD(draft.parameters(), lr=0.05)
    weave = torch.compile(draft)
    yarn = torch.randn(1600, 64)
    style = yarn[:, :8].argmax(-1)
    for step in range(args.steps):
        lo = (step * 32) % 1600
        loss = nn.functional.cross_entropy(weave(yarn[lo:lo + 32]), style[lo:lo + 32])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step % 200 == 0:
            print(f"step {step:5d} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
