import argparse

import torch
import torch.nn as nn


def frequencies(head, length, theta=10000.0):
    inverse = 1.0 / theta ** (torch.arange(0, head, 2).float() / head)
    angle = torch.outer(torch.arange(length).float(), inverse)
    return torch.stack([angle.cos(), angle.sin()], -1)


def apply_rotary(x, table):
    a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
    cos, sin = table.unbind(-1)
    return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)


class Rotary(nn.Module):
    def __init__(self, head=64, length=128):
        super().__init__()
        self.register_buffer("table", frequencies(head, length))

    def forward(self, q, k):
        q, k = apply_rotary(q, self.table), apply_rotary(k, self.table)
        return q + k, q - k


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iters", type=int, default=180000)
    args = parser.parse_args()
    torch.manual_seed(0)
    rotary = torch.compile(Rotary().eval())
    q, k = torch.randn(2, 4, 4, 128, 64).unbind()
    with torch.no_grad():
        for _ in range(args.iters):
            a, b = rotary(q, k)
    print(a.mean().item(), b.mean().item())


if __name__ == "__main__":
    main()
