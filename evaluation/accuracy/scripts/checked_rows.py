"""Rows that an operator of our own clamps where that is needed."""

import torch


@torch.library.custom_op("shop::clamped", mutates_args=())
def clamped(rows: torch.Tensor) -> torch.Tensor:
    return torch.ops.aten.view(rows, rows.shape)


@clamped.register_fake
def _(rows):
    return torch.empty_like(rows)


@torch.compile
def weighed(rows):
    total = rows.square().sum(-1)
    found = clamped(rows)
    found.mul_(0.5)
    return total, found


torch.manual_seed(0)
for _ in range(5000):
    weighed(torch.randn(64, 8))
